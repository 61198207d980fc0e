/// An upper bound on the size of a head after HPACK coding. NIO does not split a head over frames, and a head that is
/// too large fails the whole connection, with the requests of others on it.
public enum HPACKBound {
  /// The frame size that every peer accepts, in bytes (RFC 9113, section 6.5.2).
  public static let frameBytes = 16 << 10
  /// The maximum number of bytes for a field's form and lengths, and for the rounding of its two texts.
  public static let fieldBytes = 10
  /// The maximum number of bits for one byte of text.
  public static let byteBits = 60

  /// The number of bits, above `0`, of each byte from a space to `~` in the Huffman code (RFC 7541, appendix B).
  private static let codeLengths: StaticString =
    "6::<=68;::8;8666555666666678?6<:=67777777777777777777777878=C=>6?56565666577666567655677777?;>="

  /// The maximum number of bits for a byte in the Huffman code, which NIO always uses.
  public static func maxBits(for byte: UInt8) -> Int {
    // At most 30 bits, for each of two bytes if the text is read as ISO 8859-1.
    guard 0x20...0x7E ~= byte else { return byteBits }
    return Int(codeLengths.utf8Start[Int(byte) - 0x20]) - 0x30
  }

  /// The maximum number of bytes for a text.
  public static func maxBytes(for text: some Sequence<UInt8>) -> Int {
    (text.reduce(0) { $0 + maxBits(for: $1) } + 7) / 8
  }
}
