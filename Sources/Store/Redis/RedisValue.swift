/// A reply as a plain value: for the handshake and the subscriptions, where an allocation does not count.
indirect enum RedisValue: Equatable {
  case null
  case integer(Int64)
  case text(String)
  case error(String)
  case array([RedisValue])

  /// The text, `nil` for anything else.
  var text: String? {
    if case .text(let text) = self { text } else { nil }
  }
}
