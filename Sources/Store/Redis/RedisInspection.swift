/// What one look at a live Redis tells: settled at the handshake, it may have been changed since.
struct RedisInspection: Equatable {
  /// Why this Redis may lose records, a sentence each.
  var doubts: [String] = []
  /// Why nothing may be published.
  var publishRefusal: String?
  /// The epoch of the namespace; `nil` where it may not be read.
  var epoch: String?

  /// The commands of a look: three replies of a few hundred bytes to some ten microseconds of Redis' time.
  static func commands(_ keys: RedisKeys) -> [RedisHandshake.Step] {
    [
      .memory, .persistence, .publish(channel: keys.invalidations),
      .makeEpoch(key: keys.facts, RedisEpoch.made()), .readEpoch(key: keys.facts),
    ]
  }

  mutating func take(_ reply: RedisValue, to step: RedisHandshake.Step) {
    switch step {
    case .memory: doubts += RedisDurability.doubts(memory: reply)
    case .persistence: doubts += RedisDurability.doubts(persistence: reply)
    case .publish: if case .error(let text) = reply { publishRefusal = RedisRefusal.advice(text) }
    case .readEpoch: epoch = reply.text
    case .authenticate, .select, .name, .load, .clock, .makeEpoch: break
    }
  }
}

extension RedisPipeline {
  /// Looks at Redis over this connection; `nil` where it was lost meanwhile. On the pipeline's loop.
  func inspect(_ tell: @escaping (RedisInspection?) -> Void) {
    let steps = RedisInspection.commands(keys)
    var inspection: RedisInspection? = RedisInspection()
    for (index, step) in steps.enumerated() {
      askPlainly(step.command) { reply in
        if let reply { inspection?.take(reply, to: step) } else { inspection = nil }
        if index == steps.count - 1 { tell(inspection) }
      }
    }
  }
}
