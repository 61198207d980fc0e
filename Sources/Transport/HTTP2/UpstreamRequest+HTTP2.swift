import Idempotency
import NIOCore
import Wire

extension UpstreamRequest {
  /// The least that every backend takes as one frame.
  private static let frameBytes = 16 << 10

  /// Whether the head surely fits a single frame. NIO splits none, and fails the whole connection over one that is too
  /// large, with the requests of others on it.
  var fitsHTTP2: Bool {
    // The names of pseudo-header fields, a length, and changes of the table's size.
    var size = 128
    for byte in method.utf8 { size += Self.mostBytes(for: byte) }
    for byte in target.utf8 { size += Self.mostBytes(for: byte) }
    fields.withUnsafeReadableBytes { bytes in
      // What tells a field's form and lengths takes up to ten bytes.
      for byte in bytes { size += byte == ASCII.lineFeed ? 10 : Self.mostBytes(for: byte) }
    }
    return size <= Self.frameBytes
  }

  /// What a byte may grow to by Huffman's code (RFC 7541, appendix B), which NIO always uses.
  private static func mostBytes(for byte: UInt8) -> Int {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "-")...UInt8(ascii: ";"), UInt8(ascii: "="), UInt8(ascii: "_"), UInt8(ascii: "%"),
      UInt8(ascii: "&"), UInt8(ascii: "*"), UInt8(ascii: ","), ASCII.space:
      1
    // At most 19 bits.
    case 0x21...0x7E: 3
    // At most 30 bits, and two bytes where it is taken for ISO 8859-1.
    default: 8
    }
  }
}
