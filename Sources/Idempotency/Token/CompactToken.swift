/// A signed token in its compact form (RFC 7515, section 7.1), taken apart. Nothing of it is verified.
public struct CompactToken: Sendable {
  /// The name of the signature's algorithm, as the header states it.
  public let algorithm: String
  /// The name of the key, `kid`; `nil` if the header has none.
  public let keyID: String?
  /// The bytes that the signature signs: header and payload as they came, with the dot between them.
  public let signed: [UInt8]
  public let signature: [UInt8]
  /// The decoded payload, which should be JSON.
  public let payload: [UInt8]

  /// Takes a token apart; `nil` if it is malformed, or demands by `crit` what no reader of this version understands.
  public init?(_ text: [UInt8]) {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64URL.decode(parts[0]),
      let payload = Base64URL.decode(parts[1]), let signature = Base64URL.decode(parts[2]),
      let fields = HeaderFields(header)
    else { return nil }
    algorithm = fields.algorithm
    keyID = fields.keyID
    signed = Array(text[..<parts[1].endIndex])
    self.signature = signature
    self.payload = payload
  }

  /// The maximum length of a header that is read for its algorithm and key alone, in bytes of its text.
  private static let maxHeaderBytes = 1 << 10

  /// The algorithm and the key that a token's header states; `nil` where it is malformed, or too long to be looked at
  /// on an event loop.
  public static func statement(of text: [UInt8]) -> (algorithm: String, keyID: String?)? {
    guard let end = text.prefix(maxHeaderBytes + 1).firstIndex(of: UInt8(ascii: ".")),
      let header = Base64URL.decode(text[..<end]), let fields = HeaderFields(header)
    else { return nil }
    return (fields.algorithm, fields.keyID)
  }

  private struct HeaderFields {
    let algorithm: String
    let keyID: String?

    init?(_ header: [UInt8]) {
      let fields = header.withUnsafeBytes { bytes -> (algorithm: TokenMember, keyID: TokenMember)? in
        guard let document = try? JSONParser.parse(bytes),
          case .absent = TokenMember(document, JSONPointer(member: "crit"))
        else { return nil }
        return (
          TokenMember(document, JSONPointer(member: "alg")), TokenMember(document, JSONPointer(member: "kid"))
        )
      }
      guard let fields, case .text(let algorithm) = fields.algorithm else { return nil }
      self.algorithm = String(decoding: algorithm, as: UTF8.self)
      switch fields.keyID {
      case .absent: keyID = nil
      case .text(let name): keyID = String(decoding: name, as: UTF8.self)
      case .number, .other: return nil
      }
    }
  }
}

/// One member of a token's header or payload.
enum TokenMember {
  case absent
  case text([UInt8])
  /// The digits of an integer, or the text of another number.
  case number([UInt8], isInteger: Bool)
  /// A value of another type, or a member that its object contains twice.
  case other

  init(_ document: JSONDocument, _ pointer: JSONPointer) {
    switch document.find(pointer) {
    case .absent: self = .absent
    case .string(let content): self = .text(Array(IteratorSequence(JSONText(content))))
    case .integer(let digits): self = .number(Array(digits), isInteger: true)
    case .decimal(let text): self = .number(Array(text), isInteger: false)
    case .ambiguous, .other: self = .other
    }
  }
}

extension JSONPointer {
  /// The place of a claim: a member's name, taken literally, or a pointer if it begins with a slash.
  init?(claim: String) {
    if claim.hasPrefix("/") { self.init(claim) } else { self.init(member: claim) }
  }
}

/// The base64url encoding without padding (RFC 7515, section 2).
enum Base64URL {
  /// The encoded bytes; `nil` if the text has another character or an impossible length.
  static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var count = 0
    for character in text {
      guard let value = value(of: character) else { return nil }
      bits = bits << 6 | value
      count += 6
      guard count >= 8 else { continue }
      count -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
    }
    return bytes
  }

  private static func value(of character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character) - 65
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character) - 71
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character) + 4
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}

/// The reason why a request's token names no caller.
public enum TokenFault: Error, Hashable, Sendable, CaseIterable {
  /// The token's field or cookie occurs twice.
  case repeated
  /// The field has another scheme than `Bearer` and `DPoP`.
  case otherScheme
  /// The token is not a signed one in compact form, or a claim that is checked has an impossible type.
  case malformed
  /// No known key of an allowed algorithm has made the signature.
  case untrusted
  case expired
  /// The time of `nbf` has not come.
  case premature
  /// Another issuer made the token, or it is for another audience.
  case foreign
  /// The keys are not known yet, so that nothing can be verified.
  case keysMissing

  /// The name of the reason in logs and metrics.
  public var label: String {
    switch self {
    case .repeated: "repeated"
    case .otherScheme: "other_scheme"
    case .malformed: "malformed"
    case .untrusted: "untrusted"
    case .expired: "expired"
    case .premature: "premature"
    case .foreign: "foreign"
    case .keysMissing: "keys_missing"
    }
  }
}

/// The result of reading a request's token.
public enum TokenReading: Sendable {
  /// There is no token, or none was looked for.
  case absent
  case verified(VerifiedToken)
  case refused(TokenFault)
}
