import NIOCore

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
