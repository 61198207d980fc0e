import NIOCore

extension MessageHead {
  /// Appends the end-to-end field lines to a buffer, each as `Name: value` and CRLF.
  ///
  /// Left out are the fields of one hop, those that `Connection` names, those in `omitted` and, where
  /// `ownSpellings` says so, the request fields that a proxy makes in every spelling with underscores, which many
  /// backends read as the same names. Neighbouring lines that stand as they are to be written are copied as one range.
  public func copyFields(
    into output: inout ByteBuffer, omitting omitted: FieldNameSet = [], ownSpellings: Bool = false
  ) {
    let left = omitted.union(.hopByHop)
    bytes.withUnsafeReadableBytes { all in
      let connectionNamesMore = connectionNamesMore(all)
      var run = 0..<0
      for field in fields {
        if left.contains(field.name) { continue }
        if ownSpellings, field.name == .other, Self.isOwnSpelling(all, field.nameRange) { continue }
        if connectionNamesMore, connectionNames(all, field.nameRange) { continue }
        let line = Self.writtenLine(all, field)
        if let line, line.lowerBound == run.upperBound {
          run = run.lowerBound..<line.upperBound
          continue
        }
        output.writeBytes(UnsafeRawBufferPointer(rebasing: all[run]))
        run = line ?? 0..<0
        if line == nil { Self.write(all, field, into: &output) }
      }
      output.writeBytes(UnsafeRawBufferPointer(rebasing: all[run]))
    }
  }

  /// The range of a line with its CRLF where it stands as it is to be written: one space, nothing after the value.
  private static func writtenLine(_ all: UnsafeRawBufferPointer, _ field: Field) -> Range<Int>? {
    let start = Int(field.nameStart)
    let nameEnd = start + Int(field.nameLength)
    let valueEnd = Int(field.valueStart) + Int(field.valueLength)
    guard Int(field.valueStart) == nameEnd + 2, valueEnd + 2 <= all.count,
      all[nameEnd] == ASCII.colon, all[nameEnd + 1] == ASCII.space,
      all[valueEnd] == ASCII.carriageReturn, all[valueEnd + 1] == ASCII.lineFeed
    else { return nil }
    return start..<valueEnd + 2
  }

  private static func write(_ all: UnsafeRawBufferPointer, _ field: Field, into output: inout ByteBuffer) {
    output.writeBytes(UnsafeRawBufferPointer(rebasing: all[field.nameRange]))
    output.writeStaticString(": ")
    output.writeBytes(UnsafeRawBufferPointer(rebasing: all[field.valueRange]))
    output.writeStaticString("\r\n")
  }

  /// Whether `Connection` lists anything besides the options that every client sends.
  private func connectionNamesMore(_ all: UnsafeRawBufferPointer) -> Bool {
    for field in fields where field.name == .connection {
      let value = UnsafeRawBufferPointer(rebasing: all[field.valueRange])
      for option in ListElements(value)
      where !ASCII.equalsIgnoringCase(option, "keep-alive") && !ASCII.equalsIgnoringCase(option, "close") {
        return true
      }
    }
    return false
  }

  /// Whether a `Connection` line names the field whose name stands at the range.
  private func connectionNames(_ all: UnsafeRawBufferPointer, _ name: Range<Int>) -> Bool {
    let name = UnsafeRawBufferPointer(rebasing: all[name])
    for field in fields where field.name == .connection {
      let value = UnsafeRawBufferPointer(rebasing: all[field.valueRange])
      for option in ListElements(value) where ASCII.equalsIgnoringCase(option, name) { return true }
    }
    return false
  }

  /// Whether the name is one of a proxy's own request fields with an underscore for a hyphen.
  private static func isOwnSpelling(_ all: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
    let name = UnsafeRawBufferPointer(rebasing: all[range])
    guard name.contains(0x5F) else { return false }
    return ownFields.contains { isSpelling(name, of: $0) }
  }

  private static let ownFields: [FieldName] = [
    .idempotencyRequestID, .idempotencyAttempt, .xForwardedFor, .xForwardedHost, .xForwardedProto,
  ]

  private static func isSpelling(_ name: UnsafeRawBufferPointer, of known: FieldName) -> Bool {
    let wanted = known.lowercased
    guard name.count == wanted.utf8CodeUnitCount else { return false }
    for index in 0..<name.count {
      let byte = name[index] == 0x5F ? 0x2D : ASCII.lowercased(name[index])
      guard byte == wanted.utf8Start[index] else { return false }
    }
    return true
  }
}
