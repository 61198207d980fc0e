import NIOSSL
import SwiftASN1
import Wire
import X509

/// The one name or address that a server's certificate must have (RFC 9525). SwiftNIO would also accept the IP address
/// that the name resolved to, which its owner could pose by, and the common name (RFC 9110, section 4.3.4).
enum ServerIdentity: Equatable, Sendable {
  /// A host name in lower case, without the dot at its end.
  case name(String)
  case address(IPAddress)

  init(_ host: String) {
    if let address = IPAddress(host) {
      self = .address(address)
    } else {
      self = .name(Self.folded(host))
    }
  }

  func isProven(by certificate: NIOSSLCertificate) -> Bool {
    guard let bytes = try? certificate.toDERBytes(), let parsed = try? Certificate(derEncoded: bytes),
      let names = try? parsed.extensions.subjectAlternativeNames
    else { return false }
    return isAmong(names)
  }

  func isAmong(_ names: some Sequence<GeneralName>) -> Bool {
    names.contains { candidate in
      switch (self, candidate) {
      case (.name(let name), .dnsName(let pattern)): Self.matches(name, Self.folded(pattern))
      case (.address(let address), .ipAddress(let bytes)): IPAddress(packed: bytes.bytes) == address
      default: false
      }
    }
  }

  /// Whether the name is the pattern, or has its wildcard for the first label (RFC 9525, section 6.3).
  private static func matches(_ name: String, _ pattern: String) -> Bool {
    guard isHostName(name) else { return false }
    guard pattern.hasPrefix("*.") else { return name == pattern }
    guard let dot = name.utf8.firstIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return false }
    return name[dot...] == pattern.dropFirst()
  }

  /// Whether the text has no bytes but those of host names.
  private static func isHostName(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  private static func folded(_ name: String) -> String {
    let bytes = name.utf8.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | 0x20 : $0 }
    return String(decoding: bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes[...], as: UTF8.self)
  }
}

struct ServerIdentityMismatch: Error, CustomStringConvertible {
  var description: String { "the server's certificate has not the name or address that it must have" }
}
