import HTTPTypes
import Hummingbird
import Wire

/// Distinguishes the admin listener's clients from web pages that an operator has open: a browser can reach loopback
/// and private networks on behalf of any page.
///
/// A host name may point here on the initiative of its owner (DNS rebinding), so it must be configured. An address is
/// accepted if it is loopback, is configured, or is the address at which the connection arrived, because a kubelet and
/// Prometheus address a pod so.
struct PageGuard: Sendable {
  enum Verdict: Equatable {
    case accept
    /// The `Host` is neither loopback, nor configured, nor the address at which the request arrived, or there are
    /// several.
    case foreignHost
    /// The `Origin` is not the listener's own, or the browser states that the request comes from another site.
    case foreignPage
    /// A change without `Content-Type: application/json`, which a page may send without a preflight request.
    case changeWithoutJSON
  }

  private static let loopback = [
    AddressBlock(IPAddress("127.0.0.0")!, prefix: 104)!, AddressBlock(IPAddress("::1")!, prefix: 128)!,
  ]

  /// The accepted names, in lower case.
  private let names: Set<String>
  private let addresses: Set<IPAddress>

  /// Creates a guard.
  ///
  /// - Parameter hosts: The names and addresses by which the listener is reached, besides loopback, in any letter case.
  init(hosts: [String]) {
    names = Set(hosts.map { $0.lowercased() } + ["localhost"])
    addresses = Set(hosts.compactMap { IPAddress($0) })
  }

  /// Returns the verdict on a request.
  ///
  /// - Parameters:
  ///   - request: The request's head.
  ///   - local: The address at which the connection arrived; `nil` if it is not known.
  func verdict(on request: HTTPRequest, at local: IPAddress?) -> Verdict {
    // Every browser sends a host; a probe by HTTP/1.0 may not.
    if let authority = request.authority, !isOwn(authority, at: local) { return .foreignHost }
    guard request.hasOneHost else { return .foreignHost }
    if let origin = request.headerFields[.origin] {
      // The listener speaks no TLS: a page by https is another origin, although its name is the same.
      guard let authority = request.authority, origin.lowercased() == "http://\(authority.lowercased())"
      else {
        return .foreignPage
      }
    }
    let sites = request.headerFields.filter { $0.name.canonicalName == "sec-fetch-site" }
    guard sites.allSatisfy({ ["same-origin", "none"].contains($0.value.lowercased()) }) else {
      return .foreignPage
    }
    guard ![.get, .head, .options].contains(request.method) else { return .accept }
    let type = request.headerFields[.contentType]?.split(separator: ";").first ?? ""
    let isJSON = type.lowercased().filter { $0 != " " && $0 != "\t" } == "application/json"
    return isJSON ? .accept : .changeWithoutJSON
  }

  private func isOwn(_ authority: String, at local: IPAddress?) -> Bool {
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]"), isPort(authority[end...].dropFirst()) else {
        return false
      }
      return IPAddress(String(authority[..<end].dropFirst())).map { isOwn($0, at: local) } ?? false
    }
    let host = authority.prefix { $0 != ":" }
    guard isPort(authority[host.endIndex...]) else { return false }
    if let address = IPAddress(String(host)) { return isOwn(address, at: local) }
    let name = host.hasSuffix(".") ? host.dropLast() : host
    return names.contains(name.lowercased())
  }

  private func isOwn(_ address: IPAddress, at local: IPAddress?) -> Bool {
    address == local || addresses.contains(address) || Self.loopback.contains { $0.contains(address) }
  }

  /// Whether the text is empty, or a colon and digits.
  private func isPort(_ rest: Substring) -> Bool {
    rest.isEmpty || rest.first == ":" && rest.dropFirst().utf8.allSatisfy(ASCII.isDigit)
  }
}

extension HTTPRequest {
  /// Whether `Host` was given once at most. The first one has become `authority`; NIO leaves the others as fields.
  fileprivate var hasOneHost: Bool { !headerFields.contains { $0.name.canonicalName == "host" } }
}

/// Refuses requests that a web page of another origin has caused, before anything else is checked.
struct PageGuardMiddleware: RouterMiddleware {
  let pages: PageGuard

  @concurrent
  func handle(
    _ request: Request, context: AdminContext,
    next: @concurrent (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    switch pages.verdict(on: request.head, at: context.local) {
    case .accept: return try await next(request, context)
    case .foreignHost:
      throw AdminError(
        .forbidden, "this Host is not the listener's: reach it by its own address, or add it to admin.hosts")
    case .foreignPage:
      throw AdminError(.forbidden, "requests that a web page of another origin causes are refused")
    case .changeWithoutJSON:
      throw AdminError(.unsupportedMediaType, "send a change with Content-Type: application/json")
    }
  }
}
