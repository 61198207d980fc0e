import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// The resolver of one attempt to connect.
///
/// SwiftNIO's own has one queue per event loop, through which addresses go as well: a name server that does not reply
/// would hold up the connections to every other host. Confined to its loop, hence `@unchecked Sendable`.
public final class HostResolver: Resolver, @unchecked Sendable {
  private let loop: any EventLoop
  private let lookups: HostLookups
  /// The lookup that both kinds of address come from; `nil` before the first query.
  private var lookup: EventLoopFuture<[SocketAddress]>?

  public init(on loop: any EventLoop, lookups: HostLookups = .shared) {
    self.loop = loop
    self.lookups = lookups
  }

  public func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    addresses(of: host, port).map { $0.filter { $0.protocol == .inet } }
  }

  public func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    addresses(of: host, port).map { $0.filter { $0.protocol == .inet6 } }
  }

  public func cancelQueries() {}

  private func addresses(of host: String, _ port: Int) -> EventLoopFuture<[SocketAddress]> {
    loop.assertInEventLoop()
    if let lookup { return lookup }
    let began = begin(host, port)
    lookup = began
    return began
  }

  private func begin(_ host: String, _ port: Int) -> EventLoopFuture<[SocketAddress]> {
    guard 0...65535 ~= port else { return loop.makeFailedFuture(UnknownHost()) }
    if let literal = try? SocketAddress(ipAddress: host, port: port) {
      return loop.makeSucceededFuture([literal])
    }
    return lookups.find(host, on: loop).flatMapThrowing { found in
      guard !found.isEmpty else { throw UnknownHost() }
      return found.map { address in
        var address = address
        address.port = port
        return address
      }
    }
  }
}

/// A name that has no address.
public struct UnknownHost: Error {}

/// The lookups of host names under way, at most one for each name, each on a thread of its own: `getaddrinfo` blocks.
public final class HostLookups: Sendable {
  /// The lookups of the process.
  public static let shared = HostLookups { addresses(of: $0) }

  private let lookUp: @Sendable (String) -> [SocketAddress]
  /// The results that are awaited, by name.
  private let awaited = Mutex<[String: [EventLoopPromise<[SocketAddress]>]]>([:])

  /// - Parameter lookUp: Returns the addresses of a name, of any port; none if it is not known. Blocks.
  public init(by lookUp: @escaping @Sendable (String) -> [SocketAddress]) { self.lookUp = lookUp }

  /// The addresses of a name; none if it is not known. A lookup that is under way counts.
  func find(_ host: String, on loop: any EventLoop) -> EventLoopFuture<[SocketAddress]> {
    let promise = loop.makePromise(of: [SocketAddress].self)
    let isFirst = awaited.withLock { awaited in
      awaited[host, default: []].append(promise)
      return awaited[host]?.count == 1
    }
    if isFirst, !startThread({ self.end(host, self.lookUp(host)) }) { end(host, []) }
    return promise.futureResult
  }

  private func end(_ host: String, _ found: [SocketAddress]) {
    for promise in awaited.withLock({ $0.removeValue(forKey: host) }) ?? [] { promise.succeed(found) }
  }

  private static func addresses(of host: String) -> [SocketAddress] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
    defer { freeaddrinfo(list) }
    var found: [SocketAddress] = []
    var next = list
    while let entry = next {
      if let address = address(of: entry.pointee, host) { found.append(address) }
      next = entry.pointee.ai_next
    }
    return found
  }

  private static func address(of entry: addrinfo, _ host: String) -> SocketAddress? {
    guard let bytes = UnsafeRawPointer(entry.ai_addr) else { return nil }
    switch entry.ai_family {
    case AF_INET: return SocketAddress(bytes.loadUnaligned(as: sockaddr_in.self), host: host)
    case AF_INET6: return SocketAddress(bytes.loadUnaligned(as: sockaddr_in6.self), host: host)
    default: return nil
    }
  }
}
