#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The name of one intent, by which a server recognises its repetitions.
///
/// A key is made once, where the user acts, and stays the same over retries, restarts and new credentials. A missing,
/// late or unknown response is never a reason for a new one: that would run the operation twice.
public struct IntentKey: Hashable, Sendable {
  /// The key as it stands in the request, without the quotation marks that some servers write around it.
  public let rawValue: String

  /// A key that another system has made: 1 to 255 visible ASCII characters, none of them a quotation mark or a
  /// backslash. `nil` for any other text.
  public init?(_ text: String) {
    let isValid = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
    guard isValid, (1...255).contains(text.utf8.count) else { return nil }
    rawValue = text
  }

  /// A new key: a UUID of version 7 (RFC 9562, section 5.7), whose first 48 bits are the time in milliseconds.
  ///
  /// Keys that are made later sort later, which keeps a server's indexes small. Uniqueness rests on 74 random bits, and
  /// holds for a clock that was set back.
  public init(at date: Date, random: () -> UInt64) {
    let milliseconds = UInt64(max(0, date.timeIntervalSince1970 * 1000))
    let high = milliseconds << 16 | 0x7000 | random() & 0x0FFF
    let low = random() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    let digits = Self.hexadecimal(high) + Self.hexadecimal(low)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text += "-" }
      text.append(digit)
    }
    rawValue = text
  }

  private static func hexadecimal(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}

extension IntentKey: CustomStringConvertible {
  /// The key itself.
  public var description: String { rawValue }
}

extension IntentKey: Codable {
  /// A key from its text.
  public init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let key = IntentKey(text) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "The text cannot be the key of an intent."))
    }
    self = key
  }

  /// The key as a text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }
}
