import Crypto

// The import is needed only for `ContiguousBytes`, the protocol through which a digest gives access to its bytes.
import FoundationEssentials
import Wire

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
