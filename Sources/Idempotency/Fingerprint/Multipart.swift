import Wire

/// The parts of a `multipart/form-data` body (RFC 7578), as positions in it.
struct Multipart {
  struct Part {
    /// The part's field lines, without the empty line after them.
    var fields: Range<Int>
    var content: Range<Int>
  }

  let parts: [Part]

  init(parts: [Part]) { self.parts = parts }

  /// Divides a body; `nil` unless it consists of parts between delimiters, from the first delimiter to the closing one.
  /// Any other body is fingerprinted as plain bytes.
  ///
  /// The time is linear, because no boundary contains the CR at which a delimiter begins.
  init?(_ body: UnsafeRawBufferPointer, boundary: [UInt8]) {
    guard let opening = Delimiter(at: 0, in: body, boundary: boundary, isFirst: true), !opening.isClosing
    else {
      return nil
    }
    var parts: [Part] = []
    var start = opening.end
    while let delimiter = Delimiter.next(from: start - 2, in: body, boundary: boundary) {
      guard let part = Self.part(from: start, to: max(start, delimiter.start), in: body) else { return nil }
      parts.append(part)
      start = delimiter.end
      guard !delimiter.isClosing else {
        guard start == body.count else { return nil }
        self.parts = parts
        return
      }
    }
    return nil
  }

  /// Splits a part at its first empty line.
  private static func part(from start: Int, to end: Int, in body: UnsafeRawBufferPointer) -> Part? {
    if end - start >= 2, isLineEnd(at: start, in: body) {
      return Part(fields: start..<start, content: start + 2..<end)
    }
    var position = start
    while position + 4 <= end {
      if isLineEnd(at: position, in: body), isLineEnd(at: position + 2, in: body) {
        return Part(fields: start..<position, content: position + 4..<end)
      }
      position += 1
    }
    return nil
  }

  static func isLineEnd(at position: Int, in body: UnsafeRawBufferPointer) -> Bool {
    position + 2 <= body.count && body[position] == ASCII.carriageReturn
      && body[position + 1] == ASCII.lineFeed
  }
}

extension Multipart {
  /// A delimiter: `--boundary` at the beginning of a line, and the rest of that line.
  private struct Delimiter {
    /// The offset of the delimiter, including the line's end before it.
    var start: Int
    /// The offset after the line's end.
    var end: Int
    var isClosing: Bool

    static func next(from position: Int, in body: UnsafeRawBufferPointer, boundary: [UInt8]) -> Delimiter? {
      var position = position
      while position < body.count {
        if body[position] == ASCII.carriageReturn,
          let found = Delimiter(at: position, in: body, boundary: boundary, isFirst: false)
        {
          return found
        }
        position += 1
      }
      return nil
    }

    init?(at start: Int, in body: UnsafeRawBufferPointer, boundary: [UInt8], isFirst: Bool) {
      var position = start
      if !isFirst {
        guard Multipart.isLineEnd(at: position, in: body) else { return nil }
        position += 2
      }
      guard position + 2 + boundary.count <= body.count, body[position] == UInt8(ascii: "-"),
        body[position + 1] == UInt8(ascii: "-")
      else { return nil }
      position += 2
      for index in 0..<boundary.count where body[position + index] != boundary[index] { return nil }
      position += boundary.count
      isClosing =
        position + 2 <= body.count && body[position] == UInt8(ascii: "-")
        && body[position + 1] == UInt8(ascii: "-")
      if isClosing { position += 2 }
      while position < body.count, body[position] == ASCII.space || body[position] == ASCII.tab {
        position += 1
      }
      if Multipart.isLineEnd(at: position, in: body) {
        position += 2
      } else if !isClosing || position < body.count {
        return nil
      }
      self.start = start
      end = position
    }
  }
}

extension Multipart {
  /// Writes the fields and content of every part in order, each after its length. The boundary is not written.
  func write(_ body: UnsafeRawBufferPointer, to hash: inout FramedHash) {
    hash.number(parts.count)
    for part in parts {
      hash.frame(UnsafeRawBufferPointer(rebasing: body[part.fields]))
      hash.frame(UnsafeRawBufferPointer(rebasing: body[part.content]))
    }
  }
}
