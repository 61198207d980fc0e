import Idempotency
import Wire

/// Who stands at the other end of a client's connection, or behind a proxy that is believed, and what the connection
/// speaks.
struct ClientPeer: Sendable {
  /// The client's IP address as text, empty for a unix socket, and the certificate.
  private(set) var caller: CallerPeer
  let isSecure: Bool
  var isHTTP2 = false
  /// `X-Forwarded-For` and `X-Forwarded-Proto` for the backend, as field lines.
  private(set) var forwardedLines: String
  /// `X-Forwarded-Host` where a proxy's is passed on; else it is made of the request's host.
  private(set) var forwardedHost: String?

  init(address: String, isSecure: Bool = false, certificate: CertificateIdentity? = nil) {
    // A client of IPv4 has one address, by whatever socket it comes.
    let address = address.utf8.contains(UInt8(ascii: ":")) ? IPAddress(address)?.text ?? address : address
    caller = CallerPeer(address: address, certificate: certificate)
    self.isSecure = isSecure
    forwardedLines = Self.lines([], address, isSecure ? "https" : "http")
  }

  /// The `Via` line: by which version the request came.
  func via(_ head: MessageHead) -> StaticString {
    if isHTTP2 { return "Via: 2.0 semel\r\n" }
    return head.minorVersion == 0 ? "Via: 1.0 semel\r\n" : "Via: 1.1 semel\r\n"
  }
}

extension ClientPeer {
  /// The client as a request tells of it, where the peer is a proxy that is believed.
  func believing(_ head: MessageHead, by trusted: TrustedProxies) -> ClientPeer {
    guard !trusted.isEmpty, Self.forwarding.contains(where: { head.first($0) != nil }) else { return self }
    let own = IPAddress(caller.address)
    guard trusted.trusts(own) else { return self }
    var peer = self
    peer.caller.address = trusted.client(in: head, from: own)?.text ?? caller.address
    let chain = head.fields.filter { $0.name == .xForwardedFor }.map { head.string($0.valueRange) }
    let said = Self.only(.xForwardedProto, of: head)?.lowercased()
    let believed = said.flatMap { ["http", "https"].contains($0) ? $0 : nil }
    peer.forwardedLines = Self.lines(chain, caller.address, believed ?? (isSecure ? "https" : "http"))
    peer.forwardedHost = Self.only(.xForwardedHost, of: head)
    return peer
  }

  private static let forwarding: [FieldName] = [.xForwardedFor, .xForwardedProto, .xForwardedHost]

  /// The value of a field that is there once and not empty: of two, nobody can tell which one is meant.
  private static func only(_ name: FieldName, of head: MessageHead) -> String? {
    guard head.count(name) == 1, let value = head.string(name), !value.isEmpty else { return nil }
    return value
  }

  /// The addresses that were said before, then the peer's own.
  private static func lines(_ chain: [String], _ address: String, _ scheme: String) -> String {
    let all = (chain + [address]).filter { !$0.isEmpty }.joined(separator: ", ")
    return (all.isEmpty ? "" : "X-Forwarded-For: \(all)\r\n") + "X-Forwarded-Proto: \(scheme)\r\n"
  }
}
