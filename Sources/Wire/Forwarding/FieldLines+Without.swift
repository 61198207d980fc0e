import NIOCore

extension ByteBuffer {
  /// A block of field lines, each ended by CRLF, without the fields of these names; the block itself if it has none of
  /// them.
  public func fieldLines(without names: FieldNameSet) -> ByteBuffer {
    let lines = readableBytesView
    var kept: ByteBuffer?
    // The start of the bytes that are kept but not yet copied.
    var pending = lines.startIndex
    var start = lines.startIndex
    while start < lines.endIndex {
      let end = lines[start...].firstIndex(of: ASCII.lineFeed).map { $0 + 1 } ?? lines.endIndex
      if names.contains(Self.name(of: lines[start..<end])) {
        var copy = kept ?? ByteBufferAllocator().buffer(capacity: readableBytes)
        copy.writeBytes(lines[pending..<start])
        kept = copy
        pending = end
      }
      start = end
    }
    guard var kept else { return self }
    kept.writeBytes(lines[pending...])
    return kept
  }

  private static func name(of line: ByteBufferView) -> FieldName {
    line.withUnsafeBytes { line in
      guard let colon = line.firstIndex(of: ASCII.colon) else { return .other }
      return FieldName.recognise(UnsafeRawBufferPointer(rebasing: line[..<colon]))
    }
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
