/// The properties of a connection that identify the client at its other end, with the tokens of its request.
public struct CallerPeer: Sendable {
  /// The client's IP address without port, as far as it is trusted; `nil` if there is none or it is unknown.
  public var address: String?
  /// The identity in the certificate with which the client authenticated; `nil` if it has none.
  public var certificate: CertificateIdentity?
  /// The token in the `Authorization` of the request at hand, once it has been verified.
  public var token = TokenReading.absent
  /// Those in other places.
  private var otherTokens: [TokenPlace: TokenReading] = [:]

  public init(address: String?, certificate: CertificateIdentity? = nil) {
    self.address = address
    self.certificate = certificate
  }

  public func token(at place: TokenPlace) -> TokenReading {
    place == .authorization ? token : otherTokens[place] ?? .absent
  }

  public mutating func set(_ reading: TokenReading, at place: TokenPlace) {
    if place == .authorization { token = reading } else { otherTokens[place] = reading }
  }
}

/// The names in a client's verified certificate, which stay the same when the certificate is renewed.
public struct CertificateIdentity: Hashable, Sendable {
  /// The subject's distinguished name in the form of RFC 4514; `nil` if there is none.
  public var subject: String?
  /// The subject's alternative names of the first kind present, each with its kind before it: `uri:`, `dns:` or
  /// `email:`. They are sorted, and none contains a NUL.
  public var names: [String]
  /// The configured name of the authority that the certificate was verified by; `nil` if it has none. Two authorities
  /// may give the same names to different clients.
  public var authority: String?

  public init(subject: String?, names: [String], authority: String? = nil) {
    self.subject = subject
    self.names = names
    self.authority = authority
  }

  /// The names of the first kind that is there: URIs, else host names, else mail addresses.
  public static func names(uris: [String], hosts: [String], mails: [String]) -> [String] {
    let kinds = [
      uris.map { "uri:" + $0 }, hosts.map { "dns:" + $0.lowercased() }, mails.map { "email:" + $0 },
    ]
    return (kinds.first { !$0.isEmpty } ?? []).sorted()
  }

  /// The certificate's value for a part of the caller; `nil` if the certificate has none.
  func value(_ part: CallerPart.CertificatePart) -> String? {
    switch part {
    case .subject: subject
    case .san: names.isEmpty ? nil : names.joined(separator: "\0")
    case .identity: value(.san) ?? value(.subject).map { "subject:" + $0 }
    }
  }
}
