/// A reply as a plain value, for the handshake and the subscriptions, where an allocation does not matter.
indirect enum RedisValue: Equatable, Sendable {
  case null
  case integer(Int64)
  case text(String)
  case error(String)
  case array([RedisValue])

  /// The text; `nil` for any other value.
  var text: String? {
    if case .text(let text) = self { text } else { nil }
  }

  /// Returns the value of a line `NAME:VALUE` of a reply to `INFO`; `nil` if there is none.
  func info(_ name: String) -> Substring? {
    let prefix = name + ":"
    return text?.split(whereSeparator: \.isNewline).first { $0.hasPrefix(prefix) }?.dropFirst(prefix.count)
  }
}
