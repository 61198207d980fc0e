/// A reply as a plain value.
indirect enum RedisValue: Equatable, Sendable {
  case null
  case integer(Int64)
  case text(String)
  case error(String)
  case array([RedisValue])

  var text: String? {
    if case .text(let text) = self { text } else { nil }
  }

  var error: String? {
    if case .error(let text) = self { text } else { nil }
  }

  /// Returns the value of a line `NAME:VALUE` of a reply to `INFO`.
  func info(_ name: String) -> Substring? {
    guard let text else { return nil }
    let bytes = text.utf8
    var start = bytes.startIndex
    while start < bytes.endIndex {
      let end = bytes[start...].firstIndex { $0 == 0x0D || $0 == 0x0A } ?? bytes.endIndex
      let line = bytes[start..<end]
      if line.starts(with: name.utf8) {
        let value = line.dropFirst(name.utf8.count)
        if value.first == UInt8(ascii: ":") { return text[value.index(after: value.startIndex)..<end] }
      }
      start = end < bytes.endIndex ? bytes.index(after: end) : end
    }
    return nil
  }
}
