/// How large a head can be once HPACK has coded it. NIO splits no head over frames, and fails the whole connection over
/// one that is too large, with the requests of others on it.
public enum HPACKBound {
  /// The least that every peer takes as one frame (RFC 9113, section 6.5.2).
  public static let frameBytes = 16 << 10
  /// What tells a field's form and lengths takes no more.
  public static let fieldBytes = 10
  /// No byte of a text takes more.
  public static let byteBytes = 8

  /// What a byte may grow to by Huffman's code (RFC 7541, appendix B), which NIO always uses.
  public static func mostBytes(for byte: UInt8) -> Int {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "-")...UInt8(ascii: ";"), UInt8(ascii: "="), UInt8(ascii: "_"), UInt8(ascii: "%"),
      UInt8(ascii: "&"), UInt8(ascii: "*"), UInt8(ascii: ","), ASCII.space:
      1
    // At most 19 bits.
    case 0x21...0x7E: 3
    // At most 30 bits, and two bytes where it is taken for ISO 8859-1.
    default: byteBytes
    }
  }

  public static func mostBytes(for text: some Sequence<UInt8>) -> Int {
    text.reduce(0) { $0 + mostBytes(for: $1) }
  }
}
