/// What the connection itself says of the client at its other end.
public struct CallerPeer: Sendable {
  /// The IP address, as far as it is believed, without port; empty where there is none or it is unknown.
  public var address: String
  /// Whom the certificate names with which the client has proved itself; `nil` where it has none.
  public var certificate: CertificateIdentity?

  public init(address: String, certificate: CertificateIdentity? = nil) {
    self.address = address
    self.certificate = certificate
  }
}

/// Whom a client's verified certificate names: what stays the same when it is renewed.
public struct CertificateIdentity: Hashable, Sendable {
  /// The subject's distinguished name by RFC 4514; empty where it has none.
  public var subject: String
  /// The subject's alternative names of the first kind that is there, each with its kind before it: `uri:`, `dns:` or
  /// `email:`. Sorted, and none holds a NUL.
  public var names: [String]

  public init(subject: String, names: [String]) {
    self.subject = subject
    self.names = names
  }

  /// What a part of the caller takes of it; `nil` where it has none of that.
  func value(_ part: CallerPart.CertificatePart) -> String? {
    switch part {
    case .subject: subject.isEmpty ? nil : subject
    case .san: names.isEmpty ? nil : names.joined(separator: "\0")
    case .identity: value(.san) ?? value(.subject).map { "subject:" + $0 }
    }
  }
}
