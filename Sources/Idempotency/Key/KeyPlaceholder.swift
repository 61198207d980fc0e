import Wire

/// Texts that clients send in place of a key which they do not have.
///
/// Two operations of one client would be one by such a key: the second gets the first one's response, or is refused
/// until that is forgotten.
enum KeyPlaceholder {
  /// The texts that languages make of a missing value, and the UUID that is none (RFC 9562, section 5.9).
  private static let texts: [StaticString] = [
    "undefined", "null", "none", "nan", "nil", "[object object]", "00000000-0000-0000-0000-000000000000",
  ]

  /// Whether the key is such a text, in any letter case, or contains a template that was not filled in: `${id}`, `{{id}}`.
  static func isOne(_ key: [UInt8]) -> Bool {
    key.withUnsafeBytes { key in
      for text in texts where text.utf8CodeUnitCount == key.count && ASCII.equalsIgnoringCase(key, text) {
        return true
      }
      guard let brace = key.firstIndex(of: UInt8(ascii: "{")) else { return false }
      return isTemplate(key[brace...], after: brace == 0 ? nil : key[brace - 1])
    }
  }

  /// Whether a text that begins with a brace has a template: a dollar sign before a brace that is closed, or two braces
  /// that are.
  private static func isTemplate(_ text: Slice<UnsafeRawBufferPointer>, after previous: UInt8?) -> Bool {
    let (open, close) = (UInt8(ascii: "{"), UInt8(ascii: "}"))
    var (last, isOpen, isDouble) = (previous, false, false)
    for byte in text {
      if byte == open {
        isOpen = isOpen || last == UInt8(ascii: "$")
        isDouble = isDouble || last == open
      } else if byte == close, isOpen || isDouble && last == close {
        return true
      }
      last = byte
    }
    return false
  }
}
