import NIOCore
import Wire

/// The decoded name/value pairs of a query or of an `application/x-www-form-urlencoded` body, in their order: the
/// oracle of `FormPairs` and `PercentText`.
///
/// Decoding follows the WHATWG URL standard: empty pieces are skipped, a piece without `=` has an empty value, and a
/// `%` that begins no encoding represents itself. Pairs without anything to decode are slices of the input.
struct QueryPairs: Sequence, IteratorProtocol {
  struct Pair: Equatable, Sendable {
    let name: ByteBuffer
    let value: ByteBuffer
  }

  private let bytes: ByteBuffer
  private let plusIsSpace: Bool
  private var at: Int

  /// Creates a sequence of the pairs in these bytes.
  ///
  /// - Parameter form: Whether `+` is a space, as in forms and in the queries that browsers make of them.
  init(_ bytes: ByteBuffer, form: Bool) {
    self.bytes = bytes
    plusIsSpace = form
    at = bytes.readerIndex
  }

  /// The next pair with decoded name and value; `nil` at the end.
  mutating func next() -> Pair? {
    while at < bytes.writerIndex {
      let piece = nextPiece()
      if piece.isEmpty { continue }
      let view = bytes.readableBytesView[piece]
      let equals = view.firstIndex(of: 0x3D)
      let name = decoded(piece.lowerBound..<(equals ?? piece.upperBound))
      let value = decoded((equals.map { $0 + 1 } ?? piece.upperBound)..<piece.upperBound)
      return Pair(name: name, value: value)
    }
    return nil
  }

  /// Steps over the next piece and its ampersand, and returns the range of the piece.
  private mutating func nextPiece() -> Range<Int> {
    let start = at
    let end = bytes.readableBytesView[start...].firstIndex(of: 0x26) ?? bytes.writerIndex
    at = end + 1
    return start..<end
  }

  private func decoded(_ range: Range<Int>) -> ByteBuffer {
    guard let raw = bytes.getSlice(at: range.lowerBound, length: range.count) else { return ByteBuffer() }
    return raw.withUnsafeReadableBytes { raw in
      raw.contains { $0 == 0x25 || plusIsSpace && $0 == 0x2B } ? decode(raw) : nil
    } ?? raw
  }

  private func decode(_ raw: UnsafeRawBufferPointer) -> ByteBuffer {
    var output = ByteBufferAllocator().buffer(capacity: raw.count)
    var at = 0
    while at < raw.count {
      if raw[at] == 0x25, at + 2 < raw.count, let high = ASCII.hexValue(raw[at + 1]),
        let low = ASCII.hexValue(raw[at + 2])
      {
        output.writeInteger(high << 4 | low)
        at += 3
      } else {
        output.writeInteger(plusIsSpace && raw[at] == 0x2B ? ASCII.space : raw[at])
        at += 1
      }
    }
    return output
  }
}
