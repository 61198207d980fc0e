import Idempotency

extension StoreInstant {
  /// Reads the reply to `TIME`, seconds and microseconds as texts; `nil` if it is none, or no clock shows such a time.
  init?(_ reply: RedisValue) {
    guard case .array(let parts) = reply, parts.count == 2,
      let seconds = parts[0].text.flatMap({ Int64($0) }), let micros = parts[1].text.flatMap({ Int64($0) }),
      1...(1 << 43) ~= seconds, 0..<1_000_000 ~= micros
    else { return nil }
    self.init(received: seconds * 1000 + micros / 1000)
  }
}
