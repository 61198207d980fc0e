/// 32 bytes: a SHA-256 digest, or an HMAC of that length.
public struct Digest256: Sendable {
  /// The 256 bits as four big-endian words: a value that needs no allocation.
  public var words: [4 of UInt64]

  /// From the 32 bytes of a digest; `nil` where there are not 32.
  public init?(_ bytes: some Sequence<UInt8>) {
    words = .init(repeating: 0)
    var count = 0
    for byte in bytes {
      guard count < 32 else { return nil }
      words[count >> 3] = words[count >> 3] << 8 | UInt64(byte)
      count += 1
    }
    guard count == 32 else { return nil }
  }

  /// The byte at an index from 0 to 31.
  public subscript(index: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: words[index >> 3] >> UInt64(56 - 8 * (index & 7)))
  }
}

extension Digest256: Hashable {
  public static func == (left: Digest256, right: Digest256) -> Bool {
    left.words[0] == right.words[0] && left.words[1] == right.words[1] && left.words[2] == right.words[2]
      && left.words[3] == right.words[3]
  }

  public func hash(into hasher: inout Hasher) {
    // A digest is uniform already: one word of it is as good as all four.
    hasher.combine(words[0])
  }
}

extension Digest256 {
  /// The length of `text`: 32 bytes in base64url without padding.
  public static let textLength = 43

  private static let alphabet: [UInt8] = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// Writes the 43 characters of base64url (RFC 4648, section 5) to the front of `buffer`.
  ///
  /// Six bits at a time off a window of 64: every record's key is written several times a request.
  public func writeText(to buffer: UnsafeMutablePointer<UInt8>) {
    Self.alphabet.withUnsafeBufferPointer { alphabet in
      for position in 0..<Self.textLength {
        let bit = position * 6
        let word = words[bit >> 6]
        let offset = UInt64(bit & 63)
        // What of the six bits lies in the next word; nothing beyond the last one.
        let next = offset > 58 && bit < 192 ? words[(bit >> 6) + 1] >> (122 - offset) : 0
        let high = offset > 58 ? word << (offset - 58) : word >> (58 - offset)
        buffer[position] = alphabet[Int((high | next) & 63)]
      }
    }
  }

  /// The digest in base64url without padding.
  public var text: String {
    String(unsafeUninitializedCapacity: Self.textLength) { buffer in
      if let start = buffer.baseAddress { writeText(to: start) }
      return Self.textLength
    }
  }

  /// Reads what `text` wrote.
  public init?(text: String) {
    guard text.utf8.count == Self.textLength else { return nil }
    var bytes: [UInt8] = []
    var bits: UInt32 = 0
    var held: UInt32 = 0
    for character in text.utf8 {
      guard let value = Self.alphabet.firstIndex(of: character) else { return nil }
      bits = bits << 6 | UInt32(value)
      held += 6
      guard held >= 8 else { continue }
      held -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> held))
    }
    // The last character has two bits to spare: only the one spelling that is written is read.
    guard bits & (1 << held - 1) == 0 else { return nil }
    self.init(bytes)
  }
}
