import Idempotency
import Wire

/// The peer of a client's connection, or the client behind a trusted proxy, and the connection's protocol.
///
/// A class, so that the deliveries of a connection share it instead of copying its texts.
final class ClientPeer: Sendable {
  /// The client's IP address, which a unix socket and an unknown client do not have, and the certificate.
  let caller: CallerPeer
  /// The same for the log, with the nearest proxy's address for an unknown one; `nil` for a unix socket.
  let loggedAddress: String?
  /// Whether the connection's peer is a trusted proxy, whose fields state the client.
  let isTrusted: Bool
  let isSecure: Bool
  let isHTTP2: Bool
  /// `X-Forwarded-For` and `X-Forwarded-Proto` for the backend, as field lines.
  let forwardedLines: String
  /// The `X-Forwarded-Host` of a trusted proxy, which is passed on; `nil` if it is made from the request's host.
  let forwardedHost: String?
  /// The connection's own address; `nil` for a unix socket.
  private let ownAddress: IPAddress?
  /// Whether a balancer named no client. The fields are then not trusted: the unknown client may have written them.
  private let isUnknown: Bool

  /// - Parameters:
  ///   - address: The address of the connection's other end, or the one that a balancer stated; empty for a unix
  ///     socket.
  ///   - isUnknown: Whether a balancer named no client.
  init(
    address: String, isUnknown: Bool = false, isSecure: Bool = false, certificate: CertificateIdentity? = nil
  ) {
    // An IPv4 client has the same address on an IPv6 socket.
    ownAddress = IPAddress(address)
    let address = address.utf8.contains(UInt8(ascii: ":")) ? ownAddress?.text ?? address : address
    caller = CallerPeer(address: isUnknown || address.isEmpty ? nil : address, certificate: certificate)
    loggedAddress = address.isEmpty ? nil : address
    (isTrusted, isHTTP2, forwardedHost) = (false, false, nil)
    self.isUnknown = isUnknown
    self.isSecure = isSecure
    forwardedLines = Self.lines([], caller.address, isSecure ? "https" : "http")
  }

  /// Creates the peer of a connection that has turned out to be HTTP/2's.
  init(overHTTP2 peer: ClientPeer) {
    (caller, loggedAddress, isTrusted) = (peer.caller, peer.loggedAddress, peer.isTrusted)
    (isSecure, isHTTP2) = (peer.isSecure, true)
    (forwardedLines, forwardedHost) = (peer.forwardedLines, peer.forwardedHost)
    (ownAddress, isUnknown) = (peer.ownAddress, peer.isUnknown)
  }

  /// Creates the client that a trusted proxy's request states.
  private init(behind proxy: ClientPeer, statedIn head: MessageHead, by trusted: TrustedProxies) {
    (isSecure, isHTTP2, isTrusted) = (proxy.isSecure, proxy.isHTTP2, true)
    (ownAddress, isUnknown) = (proxy.ownAddress, proxy.isUnknown)
    let client = trusted.client(in: head)?.text
    var caller = proxy.caller
    caller.address = client
    self.caller = caller
    guard Self.forwarding.contains(where: { head.first($0) != nil }) else {
      (loggedAddress, forwardedLines) = (proxy.loggedAddress, proxy.forwardedLines)
      forwardedHost = proxy.forwardedHost
      return
    }
    loggedAddress = client ?? proxy.loggedAddress
    let chain = head.fields.filter { $0.name == .xForwardedFor }.map { head.string($0.valueRange) }
    let believed = Self.scheme(of: head)
    forwardedLines = Self.lines(chain, proxy.caller.address, believed ?? (isSecure ? "https" : "http"))
    forwardedHost = Self.only(.xForwardedHost, of: head)
  }

  /// The `Via` line, with the version by which the request came.
  func via(_ head: MessageHead) -> StaticString {
    if isHTTP2 { return "Via: 2.0 semel\r\n" }
    return head.minorVersion == 0 ? "Via: 1.0 semel\r\n" : "Via: 1.1 semel\r\n"
  }
}

extension ClientPeer {
  /// The client that a request states, if the peer is a trusted proxy. A proxy that states no address leaves it
  /// unknown: its own address would be that of all its clients.
  func believing(_ head: MessageHead, by trusted: TrustedProxies) -> ClientPeer {
    guard !trusted.isEmpty, !isUnknown, trusted.trusts(ownAddress) else { return self }
    return ClientPeer(behind: self, statedIn: head, by: trusted)
  }

  /// The address of the connection's other end; `nil` for a Unix socket, and for one that stands for many clients: a
  /// trusted proxy, or a balancer that named no client.
  func address(unlessTrustedBy trusted: TrustedProxies) -> String? {
    guard !isUnknown, let address = caller.address else { return nil }
    return !trusted.isEmpty && trusted.trusts(ownAddress) ? nil : address
  }

  private static let forwarding: [FieldName] = [.xForwardedFor, .xForwardedProto, .xForwardedHost]

  /// The value of a field that is present once and not empty: two would be ambiguous.
  private static func only(_ name: FieldName, of head: MessageHead) -> String? {
    guard head.count(name) == 1, let value = head.string(name), !value.isEmpty else { return nil }
    return value
  }

  /// The scheme that a head states; `nil` if there is none, or another.
  private static func scheme(of head: MessageHead) -> String? {
    guard head.count(.xForwardedProto) == 1, let field = head.first(.xForwardedProto) else { return nil }
    return head.withBytes(field.valueRange) { value in
      if ASCII.equalsIgnoringCase(value, "https") { return "https" }
      return ASCII.equalsIgnoringCase(value, "http") ? "http" : nil
    }
  }

  /// The addresses that proxies stated, then the peer's own.
  private static func lines(_ chain: [String], _ address: String?, _ scheme: String) -> String {
    let all = (chain + (address.map { [$0] } ?? [])).filter { !$0.isEmpty }.joined(separator: ", ")
    return (all.isEmpty ? "" : "X-Forwarded-For: \(all)\r\n") + "X-Forwarded-Proto: \(scheme)\r\n"
  }
}
