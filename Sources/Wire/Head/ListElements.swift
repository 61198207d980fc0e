/// The elements of a comma-separated list, without the white space around them. Empty elements are skipped.
///
/// Quoted strings are not recognised: the lists that a proxy reads contain tokens.
struct ListElements: Sequence, IteratorProtocol {
  private let bytes: UnsafeRawBufferPointer
  private var at = 0

  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  mutating func next() -> UnsafeRawBufferPointer? {
    while at < bytes.count {
      var start = at
      while at < bytes.count, bytes[at] != ASCII.comma { at += 1 }
      var end = at
      at += 1
      while start < end, Self.isSpace(bytes[start]) { start += 1 }
      while start < end, Self.isSpace(bytes[end - 1]) { end -= 1 }
      if start < end { return UnsafeRawBufferPointer(rebasing: bytes[start..<end]) }
    }
    return nil
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == ASCII.space || byte == ASCII.tab }
}
