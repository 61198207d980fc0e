import Wire

/// The `name=value` parameters of a field, separated by semicolons (RFC 9110, section 5.6.6).
struct HeaderParameters {
  private let bytes: UnsafeRawBufferPointer

  /// Prepares the parameters of a field for reading.
  ///
  /// - Parameter bytes: The part of the field after its first semicolon.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// The values of all parameters with this name, unquoted.
  func values(of lowercased: StaticString) -> [[UInt8]] {
    var values: [[UInt8]] = []
    var position = 0
    while position < bytes.count {
      let (name, value, end) = parameter(from: position)
      if ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: name), lowercased) { values.append(value) }
      position = end + 1
    }
    return values
  }

  private func parameter(from start: Int) -> (name: Slice<UnsafeRawBufferPointer>, value: [UInt8], end: Int) {
    var position = start
    while position < bytes.count, bytes[position] != UInt8(ascii: ";"), bytes[position] != UInt8(ascii: "=") {
      position += 1
    }
    let name = MessageHead.trimmed(bytes[start..<position])
    guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else { return (name, [], position) }
    position += 1
    if position < bytes.count, bytes[position] == UInt8(ascii: "\"") {
      let (value, end) = quoted(from: position + 1)
      return (name, value, bytes[end...].firstIndex(of: UInt8(ascii: ";")) ?? bytes.count)
    }
    let end = bytes[position...].firstIndex(of: UInt8(ascii: ";")) ?? bytes.count
    return (name, Array(MessageHead.trimmed(bytes[position..<end])), end)
  }

  private func quoted(from start: Int) -> (value: [UInt8], end: Int) {
    var value: [UInt8] = []
    var position = start
    while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
      if bytes[position] == UInt8(ascii: "\\"), position + 1 < bytes.count { position += 1 }
      value.append(bytes[position])
      position += 1
    }
    return (value, position)
  }
}
