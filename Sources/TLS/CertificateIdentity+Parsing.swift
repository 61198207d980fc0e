import Idempotency
import NIOSSL
import SwiftASN1
import X509

extension CertificateIdentity {
  /// Reads the identity in a certificate whose signature has been checked; `nil` if it is not unambiguous.
  ///
  /// - Parameter authority: The name of the listener's authority; `nil` if it has none.
  public init?(_ certificate: NIOSSLCertificate, authority: String? = nil) {
    guard let bytes = try? certificate.toDERBytes(), let parsed = try? Certificate(derEncoded: bytes),
      let alternatives = try? parsed.extensions.subjectAlternativeNames ?? SubjectAlternativeNames()
    else { return nil }
    let names = Self.names(alternatives)
    // C code would take a NUL for the end of the name.
    guard names.allSatisfy({ !$0.utf8.contains(0) }) else { return nil }
    let subject = parsed.subject.description
    self.init(subject: subject.isEmpty ? nil : subject, names: names, authority: authority)
  }

  private static func names(_ all: SubjectAlternativeNames) -> [String] {
    var uris: [String] = []
    var hosts: [String] = []
    var mails: [String] = []
    for name in all {
      switch name {
      case .uniformResourceIdentifier(let uri): uris.append(uri)
      case .dnsName(let host): hosts.append(host)
      case .rfc822Name(let mail): mails.append(mail)
      default: break
      }
    }
    return names(uris: uris, hosts: hosts, mails: mails)
  }
}
