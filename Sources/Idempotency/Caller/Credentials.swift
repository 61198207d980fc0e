import Wire

/// The part of the value of `Authorization` that identifies the caller.
enum CredentialsReading: Equatable {
  /// The scheme is another one.
  case otherScheme
  case unreadable
  /// The bytes, which may be none.
  case found([UInt8])
}

/// Basic credentials (RFC 7617).
enum BasicCredentials {
  /// The user name in a value of `Authorization`: the bytes before the first colon, in whatever encoding they are.
  static func user(in value: UnsafeRawBufferPointer) -> CredentialsReading {
    guard let rest = value.after(scheme: "basic") else { return .otherScheme }
    guard let bytes = Base64.decode(rest), let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
      return .unreadable
    }
    return .found(Array(bytes[..<colon]))
  }
}

/// The key of an AWS Signature Version 4 in `Authorization`, with the region and the service that it signs for.
enum SigningKey {
  /// Reads `AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, …` as `KEY/REGION/SERVICE`.
  ///
  /// The key may itself contain slashes, so that the parts are counted from the end.
  static func read(_ value: UnsafeRawBufferPointer) -> CredentialsReading {
    guard let rest = value.after(scheme: "aws4-hmac-sha256") else { return .otherScheme }
    var found: [UInt8]?
    for parameter in rest.split(separator: ASCII.comma) {
      let text = MessageHead.trimmed(parameter[...])
      guard text.starts(with: "Credential=".utf8) else { continue }
      // Readers differ in which of two they take.
      guard found == nil, let key = scope(Array(text.dropFirst("Credential=".utf8.count))) else {
        return .unreadable
      }
      found = key
    }
    return found.map { .found($0) } ?? .unreadable
  }

  /// The key, the region and the service of a credential's scope; `nil` if it has another form.
  private static func scope(_ text: [UInt8]) -> [UInt8]? {
    let slash = UInt8(ascii: "/")
    let parts = text.split(separator: slash, omittingEmptySubsequences: false)
    guard parts.count >= 5, parts[parts.count - 1].elementsEqual("aws4_request".utf8),
      parts[parts.count - 4].count == 8, parts[parts.count - 4].allSatisfy(ASCII.isDigit),
      !parts[parts.count - 3].isEmpty, !parts[parts.count - 2].isEmpty
    else { return nil }
    let key = Array(parts[..<(parts.count - 4)].joined(separator: [slash]))
    guard let first = key.first, first != slash else { return nil }
    return key + [slash] + parts[parts.count - 3] + [slash] + parts[parts.count - 2]
  }

  /// Whether a request can have this key, region and service.
  static func isOne(_ text: String) -> Bool {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count >= 3 && !parts[parts.count - 1].isEmpty && !parts[parts.count - 2].isEmpty
      && text.utf8.first != UInt8(ascii: "/")
      && text.utf8.allSatisfy { $0 > ASCII.space && $0 < 0x7F && $0 != ASCII.comma }
  }
}

extension UnsafeRawBufferPointer {
  /// The credentials after a scheme, which is given in lower case; `nil` for another scheme.
  fileprivate func after(scheme: StaticString) -> UnsafeRawBufferPointer? {
    let end = firstIndex { $0 == ASCII.space || $0 == ASCII.tab } ?? count
    guard ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: self[..<end]), scheme) else { return nil }
    return UnsafeRawBufferPointer(rebasing: self[end...].drop { $0 == ASCII.space || $0 == ASCII.tab })
  }
}

/// The encoding of RFC 4648, section 4, with or without its padding.
private enum Base64 {
  /// The encoded bytes; `nil` for another character, an impossible length, or padding that does not fit.
  static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    let padding = UInt8(ascii: "=")
    let end = text.firstIndex(of: padding) ?? text.count
    let padded = text.count - end
    guard padded == 0 || padded <= 2 && text.count % 4 == 0 && text[end...].allSatisfy({ $0 == padding })
    else {
      return nil
    }
    // Its other alphabet differs in two characters.
    var plain: [UInt8] = []
    plain.reserveCapacity(end)
    for byte in text[..<end] {
      switch byte {
      case UInt8(ascii: "+"): plain.append(UInt8(ascii: "-"))
      case UInt8(ascii: "/"): plain.append(UInt8(ascii: "_"))
      case UInt8(ascii: "-"), UInt8(ascii: "_"): return nil
      default: plain.append(byte)
      }
    }
    return Base64URL.decode(plain[...])
  }
}
