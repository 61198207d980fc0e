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
}
