import Idempotency
import Platform

/// The findings of one inspection of a running Redis, whose settings may have changed since the handshake.
struct RedisInspection: Equatable {
  /// The reasons for which this Redis may lose records, one sentence each.
  var doubts: [String] = []
  /// The reason for which Semel may not publish; `nil` if it may.
  var publishRefusal: String?
  /// The reason for which Redis takes no changes now; `nil` if it takes them.
  var obstacle: String?
  /// The history of the server's data; `nil` if it may not be read.
  var history: ReplicationHistory?
  /// The epochs that could be read, by their keys.
  var epochs: [String: String] = [:]

  /// The commands of an inspection. Their replies have a few hundred bytes, and take some ten microseconds of Redis'
  /// time. The clock comes before the epoch: another process that has found it set replaces the epoch.
  ///
  /// - Parameter epochKey: The key of the epoch of this server.
  static func commands(_ keys: RedisKeys, epochKey: String) -> [RedisHandshake.Step] {
    [
      .clock, .memory, .persistence, .statistics, .history, .publish(channel: keys.invalidations),
      .makeEpoch(key: epochKey, RedisEpoch.made()), .readEpoch(key: epochKey),
    ]
  }

  /// Takes the reply to a step.
  mutating func take(_ reply: RedisValue, to step: RedisHandshake.Step) {
    switch step {
    case .memory: doubts += RedisDurability.doubts(memory: reply)
    case .persistence: doubts += RedisDurability.doubts(persistence: reply)
    case .statistics: doubts += RedisDurability.doubts(statistics: reply)
    case .publish: if case .error(let text) = reply { publishRefusal = RedisRefusal.advice(text) }
    case .history: history = ReplicationHistory(reply)
    case .makeEpoch: if case .error(let text) = reply { obstacle = RedisRefusal.obstacle(text) }
    case .readEpoch(let key): epochs[key] = reply.text
    case .authenticate, .select, .role, .name, .load, .clock, .server, .identity, .wait: break
    }
  }
}

extension RedisInspection {
  /// The findings on two nodes of a cluster.
  func joined(with other: RedisInspection) -> RedisInspection {
    RedisInspection(
      doubts: doubts + other.doubts, publishRefusal: publishRefusal ?? other.publishRefusal,
      obstacle: obstacle ?? other.obstacle, epochs: epochs.merging(other.epochs) { own, _ in own })
  }
}

extension RedisPipeline {
  /// Inspects Redis over this connection and calls `onFindings` with the findings, or with `nil` if the connection was
  /// lost meanwhile. Call it on the pipeline's loop.
  func inspect(epochKey: String, _ onFindings: @escaping (RedisInspection?) -> Void) {
    let steps = RedisInspection.commands(keys, epochKey: epochKey)
    var inspection: RedisInspection? = RedisInspection()
    for (index, step) in steps.enumerated() {
      let sentAt = BootInstant.now
      query(step.command) { reply in
        if case .clock = step, let reply { self.takeTime(reply, sentAt: sentAt) }
        if let reply { inspection?.take(reply, to: step) } else { inspection = nil }
        guard index == steps.count - 1 else { return }
        if let history = inspection?.history { self.met(history) }
        if let doubts = inspection?.doubts { inspection?.doubts = self.named(doubts) }
        if let obstacle = inspection?.obstacle { inspection?.obstacle = self.named([obstacle])[0] }
        onFindings(inspection)
      }
    }
  }
}
