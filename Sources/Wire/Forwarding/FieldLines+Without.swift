import NIOCore

extension ByteBuffer {
  /// A block of field lines, each ended by CRLF, without the fields of these names; the block itself if it has none of
  /// them.
  public func fieldLines(without names: FieldNameSet) -> ByteBuffer {
    withUnsafeReadableBytes { bytes in
      guard var line = Self.line(of: names, in: bytes, from: 0) else { return self }
      var rest = ByteBufferAllocator().buffer(capacity: bytes.count)
      // The start of the bytes that are kept but not yet copied.
      var pending = 0
      while true {
        rest.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[pending..<line.lowerBound]))
        pending = line.upperBound
        guard let next = Self.line(of: names, in: bytes, from: pending) else { break }
        line = next
      }
      rest.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[pending...]))
      return rest
    }
  }

  /// The first line with one of the names, with its end; `nil` if there is none.
  ///
  /// - Parameter start: The beginning of a line, from which the search begins.
  private static func line(
    of names: FieldNameSet, in bytes: UnsafeRawBufferPointer, from start: Int
  ) -> Range<Int>? {
    var start = start
    while start < bytes.count {
      let end = ASCII.index(of: ASCII.lineFeed, in: bytes, start..<bytes.count).map { $0 + 1 } ?? bytes.count
      let colon = ASCII.index(of: ASCII.colon, in: bytes, start..<end)
      if names.contains(
        colon.map { FieldName.recognise(UnsafeRawBufferPointer(rebasing: bytes[start..<$0])) } ?? .other)
      {
        return start..<end
      }
      start = end
    }
    return nil
  }

  /// Whether this is a block of field lines and nothing else: each has a name, a colon, a value without control
  /// characters, and CRLF.
  public var isFieldLines: Bool {
    withUnsafeReadableBytes { bytes in
      var start = 0
      while start < bytes.count {
        var at = start
        while at < bytes.count, ASCII.isTokenByte(bytes[at]) { at += 1 }
        guard at > start, at < bytes.count, bytes[at] == ASCII.colon else { return false }
        at += 1
        while at < bytes.count, bytes[at] >= ASCII.space && bytes[at] != 0x7F || bytes[at] == ASCII.tab {
          at += 1
        }
        guard at + 1 < bytes.count, bytes[at] == ASCII.carriageReturn, bytes[at + 1] == ASCII.lineFeed else {
          return false
        }
        start = at + 2
      }
      return true
    }
  }
}
