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

extension MessageHead {
  /// Appends the end-to-end field lines to a buffer, each as `Name: value` and CRLF.
  ///
  /// The fields of one hop, those that `Connection` names, those in `omitted` and those that `underscored` excludes are
  /// left out, and those that override the path unless `passesPathOverrides` says so. So are those of `omission`, if
  /// there is one. Neighbouring lines that are already in the written form are copied as one range.
  public func copyFields(
    into output: inout ByteBuffer, omitting omitted: FieldNameSet = [],
    underscored: UnderscoredFields = .passed(except: []), passesPathOverrides: Bool = true,
    _ omission: FieldOmission? = nil
  ) {
    let left = omitted.union(.hopByHop).union(omission?.known ?? [])
    bytes.withUnsafeReadableBytes { all in
      let named = namedByConnection(all)
      var run = 0..<0
      for field in fields {
        if left.contains(field.name) { continue }
        if field.name == .other {
          if underscored.excludes(all, field.nameRange) { continue }
          if !passesPathOverrides, PathOverrides.contain(all, field.nameRange) { continue }
          if let omission, omission.omits(UnsafeRawBufferPointer(rebasing: all[field.nameRange])) { continue }
        }
        if !named.isEmpty, Self.contains(named, field.nameRange, in: all) { continue }
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

  /// The range of a line with its CRLF; `nil` unless it is already in the written form, with one space before the value
  /// and nothing after it.
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
    output.writeLiteral(": ")
    output.writeBytes(UnsafeRawBufferPointer(rebasing: all[field.valueRange]))
    output.writeLiteral("\r\n")
  }

  /// Whether `Connection` lists an option besides `keep-alive` and `close`, which every client sends.
  public var connectionNamesMore: Bool {
    names.contains(.connection) && bytes.withUnsafeReadableBytes { !namedByConnection($0).isEmpty }
  }

  /// The options of `Connection` besides `keep-alive` and `close`. A head has few of them (`FramingFields`).
  private func namedByConnection(_ all: UnsafeRawBufferPointer) -> [UnsafeRawBufferPointer] {
    guard names.contains(.connection) else { return [] }
    var named: [UnsafeRawBufferPointer] = []
    for field in fields where field.name == .connection {
      let value = UnsafeRawBufferPointer(rebasing: all[field.valueRange])
      for option in ListElements(value)
      where !ASCII.equalsIgnoringCase(option, "keep-alive") && !ASCII.equalsIgnoringCase(option, "close") {
        named.append(option)
      }
    }
    return named
  }

  private static func contains(
    _ options: [UnsafeRawBufferPointer], _ name: Range<Int>, in all: UnsafeRawBufferPointer
  ) -> Bool {
    let name = UnsafeRawBufferPointer(rebasing: all[name])
    return options.contains { ASCII.equalsIgnoringCase($0, name) }
  }
}

/// The fields with which a request makes some backends take it for one of another path than the one that was matched.
enum PathOverrides {
  /// In lower case.
  private static let names: [StaticString] = [
    "x-original-url", "x-rewrite-url", "x-override-url", "x-http-path-override",
  ]

  /// Whether the name at this range is one of them, also with underscores.
  static func contain(_ all: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
    guard 13...20 ~= range.count, all[range.lowerBound] | 0x20 == UInt8(ascii: "x") else { return false }
    return names.contains { name in
      name.utf8CodeUnitCount == range.count
        && (0..<range.count).allSatisfy { index in
          let byte = all[range.lowerBound + index]
          return (byte == UInt8(ascii: "_") ? UInt8(ascii: "-") : ASCII.lowercased(byte))
            == name.utf8Start[index]
        }
    }
  }
}

/// The treatment of fields whose names contain an underscore.
///
/// Backends that pass fields on as CGI does (RFC 3875, section 4.1.18) read `Idempotency_Key` as `Idempotency-Key`.
public enum UnderscoredFields: Sendable {
  case dropped
  /// Passed on, except for those that spell one of these names with underscores.
  case passed(except: FieldNameSet)

  /// Whether the field with the name at this range is left out.
  func excludes(_ all: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
    if case .passed(let names) = self, names.isEmpty { return false }
    let name = UnsafeRawBufferPointer(rebasing: all[range])
    guard ASCII.index(of: 0x5F, in: name, 0..<name.count) != nil else { return false }
    switch self {
    case .dropped: return true
    case .passed(let names): return names.contains(Self.hyphenated(name))
    }
  }

  /// The field name with hyphens instead of underscores.
  private static func hyphenated(_ name: UnsafeRawBufferPointer) -> FieldName {
    withUnsafeTemporaryAllocation(byteCount: name.count, alignment: 1) { copy in
      for index in 0..<name.count { copy[index] = name[index] == 0x5F ? 0x2D : name[index] }
      return FieldName.recognise(UnsafeRawBufferPointer(copy))
    }
  }
}
