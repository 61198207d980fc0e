import NIOCore

extension ByteBuffer {
  /// A block of field lines, each ended by CRLF, without the fields of these names; the block itself if it has none of
  /// them.
  public func fieldLines(without names: FieldNameSet) -> ByteBuffer {
    fieldLines { names.contains(FieldName.recognise($0)) }
  }

  /// The same block without the fields that an omission leaves out, either.
  public func fieldLines(without names: FieldNameSet, _ omission: FieldOmission) -> ByteBuffer {
    fieldLines { names.contains(FieldName.recognise($0)) || omission.omits($0) }
  }

  /// - Parameter isLeftOut: Whether the field of a name is left out.
  private func fieldLines(_ isLeftOut: (UnsafeRawBufferPointer) -> Bool) -> ByteBuffer {
    withUnsafeReadableBytes { bytes in
      guard var line = Self.line(isLeftOut, in: bytes, from: 0) else { return self }
      var rest = ByteBufferAllocator().buffer(capacity: bytes.count)
      // The start of the bytes that are kept but not yet copied.
      var pending = 0
      while true {
        rest.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[pending..<line.lowerBound]))
        pending = line.upperBound
        guard let next = Self.line(isLeftOut, in: bytes, from: pending) else { break }
        line = next
      }
      rest.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[pending...]))
      return rest
    }
  }

  /// The first line that is left out, with its end; `nil` if there is none.
  ///
  /// - Parameter start: The beginning of a line, from which the search begins.
  private static func line(
    _ isLeftOut: (UnsafeRawBufferPointer) -> Bool, in bytes: UnsafeRawBufferPointer, from start: Int
  ) -> Range<Int>? {
    var start = start
    while start < bytes.count {
      let end = ASCII.index(of: ASCII.lineFeed, in: bytes, start..<bytes.count).map { $0 + 1 } ?? bytes.count
      let colon = ASCII.index(of: ASCII.colon, in: bytes, start..<end)
      if let colon, isLeftOut(UnsafeRawBufferPointer(rebasing: bytes[start..<colon])) { return start..<end }
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

extension ByteBuffer {
  /// Calls `body` for each line of a block of field lines, each ended by CRLF, in the form of HTTP/2: the name in lower
  /// case, and the value as text without the white space around it.
  ///
  /// Values that are not UTF-8 are read as ISO 8859-1, which HTTP once prescribed, because the HTTP/2 codec accepts
  /// text alone.
  public func eachFieldLine(_ body: (_ name: String, _ value: String) -> Void) {
    withUnsafeReadableBytes { all in
      for line in all.split(separator: ASCII.lineFeed) {
        guard let colon = line.firstIndex(of: ASCII.colon), line.last == ASCII.carriageReturn else {
          continue
        }
        let name = String(decoding: line[..<colon].lazy.map(ASCII.lowercased), as: UTF8.self)
        body(name, Self.text(MessageHead.trimmed(line[(colon + 1)...].dropLast())))
      }
    }
  }

  private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
    String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }
}
