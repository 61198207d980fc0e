/// An upper bound on the size of a head after HPACK coding. NIO does not split a head over frames, and a head that is
/// too large fails the whole connection, with the requests of others on it.
public enum HPACKBound {
  /// The frame size that every peer accepts, in bytes (RFC 9113, section 6.5.2).
  public static let frameBytes = 16 << 10
  /// The maximum number of bytes for a field's form and lengths.
  public static let fieldBytes = 10
  /// The maximum number of bytes for one byte of text.
  public static let byteBytes = 8

  /// The maximum number of bytes for a byte in the Huffman code (RFC 7541, appendix B), which NIO always uses.
  public static func maxBytes(for byte: UInt8) -> Int {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "-")...UInt8(ascii: ";"), UInt8(ascii: "="), UInt8(ascii: "_"), UInt8(ascii: "%"),
      UInt8(ascii: "&"), UInt8(ascii: "*"), UInt8(ascii: ","), ASCII.space:
      1
    // At most 19 bits.
    case 0x21...0x7E: 3
    // At most 30 bits, for each of two bytes if the text is read as ISO 8859-1.
    default: byteBytes
    }
  }

  /// The maximum number of bytes for a text.
  public static func maxBytes(for text: some Sequence<UInt8>) -> Int {
    text.reduce(0) { $0 + maxBytes(for: $1) }
  }
}
