import Wire

/// The `name=value` parameters of a field, separated by semicolons (RFC 9110, section 5.6.6).
struct HeaderParameters {
  /// The positions of one parameter. A quoted value is that between its quotes, in which a backslash still stands before
  /// what it escapes; one without `=` is empty.
  struct Parameter {
    fileprivate let name: Range<Int>
    let value: Range<Int>
    fileprivate let isQuoted: Bool
  }

  private let bytes: UnsafeRawBufferPointer
  private let range: Range<Int>

  /// Prepares the parameters of a field for reading.
  ///
  /// - Parameter bytes: The part of the field after its first semicolon.
  init(_ bytes: UnsafeRawBufferPointer) { self.init(bytes, in: 0..<bytes.count) }

  /// Prepares the parameters in a range of bytes, to which all positions refer.
  init(_ bytes: UnsafeRawBufferPointer, in range: Range<Int>) {
    self.bytes = bytes
    self.range = range
  }

  var isEmpty: Bool { range.isEmpty }

  /// The maximum number of parameters that are read: media types have a few.
  private static let maxParameters = 64

  /// The values of the parameters with this name, unquoted, among those that are read.
  func values(of lowercased: StaticString) -> [[UInt8]] {
    all.filter { ASCII.equalsIgnoringCase(name($0), lowercased) }.map(value)
  }

  /// The parameters in their order.
  var all: some Sequence<Parameter> {
    sequence(state: (position: range.lowerBound, left: Self.maxParameters)) { state -> Parameter? in
      guard state.position < range.upperBound, state.left > 0 else { return nil }
      let (parameter, end) = parameter(from: state.position)
      state = (end + 1, state.left - 1)
      return parameter
    }
  }

  func name(_ parameter: Parameter) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes[parameter.name])
  }

  /// The value, unquoted.
  func value(_ parameter: Parameter) -> [UInt8] {
    guard parameter.isQuoted else { return Array(bytes[parameter.value]) }
    var value: [UInt8] = []
    var position = parameter.value.lowerBound
    while position < parameter.value.upperBound {
      if bytes[position] == Self.backslash, position + 1 < range.upperBound { position += 1 }
      value.append(bytes[position])
      position += 1
    }
    return value
  }

  private static let backslash = UInt8(ascii: "\\")
  private static let quote = UInt8(ascii: "\"")

  private func parameter(from start: Int) -> (Parameter, end: Int) {
    var position = start
    while position < range.upperBound, bytes[position] != UInt8(ascii: ";"),
      bytes[position] != UInt8(ascii: "=")
    {
      position += 1
    }
    let name = trimmed(start..<position)
    guard position < range.upperBound, bytes[position] == UInt8(ascii: "=") else {
      return (Parameter(name: name, value: position..<position, isQuoted: false), position)
    }
    position += 1
    if position < range.upperBound, bytes[position] == Self.quote {
      let end = quotedEnd(from: position + 1)
      return (Parameter(name: name, value: position + 1..<end, isQuoted: true), semicolon(from: end))
    }
    let end = semicolon(from: position)
    return (Parameter(name: name, value: trimmed(position..<end), isQuoted: false), end)
  }

  private func trimmed(_ range: Range<Int>) -> Range<Int> {
    let slice = MessageHead.trimmed(bytes[range])
    return slice.startIndex..<slice.endIndex
  }

  private func semicolon(from start: Int) -> Int {
    bytes[start..<range.upperBound].firstIndex(of: UInt8(ascii: ";")) ?? range.upperBound
  }

  private func quotedEnd(from start: Int) -> Int {
    var position = start
    while position < range.upperBound, bytes[position] != Self.quote {
      position += bytes[position] == Self.backslash && position + 1 < range.upperBound ? 2 : 1
    }
    return position
  }
}
