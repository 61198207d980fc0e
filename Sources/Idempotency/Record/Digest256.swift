import Crypto
import Wire

// The import is needed only for `ContiguousBytes`, the protocol through which a digest gives access to its bytes.
import FoundationEssentials

/// A value of 32 bytes: a SHA-256 digest, or an HMAC of that length.
public struct Digest256: Sendable, BitwiseCopyable {
  /// The 256 bits as four big-endian words, which need no allocation.
  public var words: [4 of UInt64]

  /// Creates the value from the 32 bytes of a digest; `nil` for another number of bytes.
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
    // A digest is uniform, so one of its words is as good as all four.
    hasher.combine(words[0])
  }
}

extension Digest256 {
  /// The length of `text`, which is 32 bytes in base64url without padding.
  public static let textLength = 43

  private static let alphabet: StaticString =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

  /// Writes the 43 characters of base64url (RFC 4648, section 5) to the front of `buffer`.
  ///
  /// The loop makes four characters from three bytes at a time, because the key of every record is written several
  /// times per request.
  public func writeText(to buffer: UnsafeMutablePointer<UInt8>) {
    let alphabet = Self.alphabet.utf8Start
    let words: [4 of UInt64] = [
      words[0].bigEndian, words[1].bigEndian, words[2].bigEndian, words[3].bigEndian,
    ]
    withUnsafeBytes(of: words) { bytes in
      for group in 0..<10 {
        let (first, second) = (Int(bytes[3 * group]), Int(bytes[3 * group + 1]))
        let third = Int(bytes[3 * group + 2])
        buffer[4 * group] = alphabet[first >> 2]
        buffer[4 * group + 1] = alphabet[first << 4 & 48 | second >> 4]
        buffer[4 * group + 2] = alphabet[second << 2 & 60 | third >> 6]
        buffer[4 * group + 3] = alphabet[third & 63]
      }
      let (first, second) = (Int(bytes[30]), Int(bytes[31]))
      buffer[40] = alphabet[first >> 2]
      buffer[41] = alphabet[first << 4 & 48 | second >> 4]
      buffer[42] = alphabet[second << 2 & 60]
    }
  }

  /// The digest in base64url without padding.
  public var text: String {
    String(unsafeUninitializedCapacity: Self.textLength) { buffer in
      if let start = buffer.baseAddress { writeText(to: start) }
      return Self.textLength
    }
  }

  /// The six bits of a character; `nil` if it is not in the alphabet.
  private static func value(of character: UInt8) -> Int? {
    (0..<64).first { alphabet.utf8Start[$0] == character }
  }

  /// Parses the text form of a digest, as `text` returns it.
  public init?(text: String) {
    guard text.utf8.count == Self.textLength else { return nil }
    var bytes: [UInt8] = []
    var bits: UInt32 = 0
    var held: UInt32 = 0
    for character in text.utf8 {
      guard let value = Self.value(of: character) else { return nil }
      bits = bits << 6 | UInt32(value)
      held += 6
      guard held >= 8 else { continue }
      held -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> held))
    }
    // The last character has two spare bits. Only the exact spelling that would be written is accepted.
    guard bits & (1 << held - 1) == 0 else { return nil }
    self.init(bytes)
  }
}

extension Digest256 {
  /// Creates the value from the 32 bytes of a digest, read as big-endian words.
  init(_ digest: SHA256Digest) {
    words = .init(repeating: 0)
    digest.withUnsafeBytes { bytes in
      for index in 0..<4 {
        words[index] = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
      }
    }
  }

  /// The SHA-256 digest of these bytes.
  public static func sha256(of bytes: [UInt8]) -> Digest256 {
    bytes.withUnsafeBytes { bytes in
      var hasher = SHA256()
      hasher.update(bufferPointer: bytes)
      return Digest256(hasher.finalize())
    }
  }

  /// All 64 hexadecimal digits, as `sha256sum` prints them.
  public var hexText: String {
    (0..<4).map { words[$0].hexText }.joined()
  }
}
