import Idempotency
import Platform

/// The facts about a running Redis that decide what is granted there. A new connection reads them, and an inspection
/// every few seconds.
struct RedisFacts: Equatable {
  var run: String?
  /// The history of the server's data.
  var history: ReplicationHistory?
  /// The reasons for which this Redis may lose records, so that a retry executes a request again; one sentence each.
  var doubts: [String] = []
  var epochs: [String: String] = [:]
  /// The reason for which Semel may not publish; `nil` if it may.
  var publishRefusal: String?
  /// The reason for which Redis takes no changes now; `nil` if it takes them.
  var obstacle: String?
  private var lacksScript = false

  /// The steps of an inspection, which take some ten microseconds of Redis' time. The clock comes before the epoch:
  /// another process that has found it set replaces the epoch.
  ///
  /// - Parameters:
  ///   - factsKey: The key of the facts about this server.
  ///   - digest: The digest of the script of a claim.
  static func steps(_ keys: RedisKeys, factsKey: String, digest: String) -> [RedisHandshake.Step] {
    [
      .clock, .info, .publish(channel: keys.invalidations), .makeEpoch(key: factsKey, RedisEpoch.made()),
      .readEpoch(key: factsKey),
    ]
      + RedisRights.ofClaims(key: keys.trial(beside: factsKey), digest: digest).map {
        .trial($0, namespace: keys.namespace)
      }
  }

  mutating func take(_ reply: RedisValue, to step: RedisHandshake.Step) {
    switch step {
    case .info: take(info: reply)
    case .publish: publishRefusal = reply.error.map(RedisRefusal.advice)
    case .makeEpoch: obstacle = reply.error.flatMap(RedisRefusal.obstacle)
    case .readEpoch(let key): epochs[key] = reply.text
    case .trial(let right, let namespace): take(reply, toTrialOf: right, namespace)
    case .authenticate, .select, .role, .name, .load, .clock, .identity, .wait: break
    }
  }

  private mutating func take(info reply: RedisValue) {
    run = reply.info("run_id").map(String.init)
    history = ReplicationHistory(reply)
    doubts = []
    if let limit = reply.info("maxmemory"), let policy = reply.info("maxmemory_policy") {
      if limit != "0", policy != "noeviction" {
        doubts.append(
          "maxmemory-policy is \(policy): this Redis evicts records when its memory is full; set noeviction")
      }
    } else {
      doubts.append("INFO memory is refused, so it cannot be checked whether this Redis evicts records")
    }
    switch reply.info("aof_enabled") {
    case "1": break
    case nil:
      doubts.append(
        "INFO persistence is refused, so it cannot be checked whether this Redis keeps records on disk")
    default:
      doubts.append(
        "appendonly is no: this Redis forgets the newest records when it crashes; set appendonly yes")
    }
    // Counted since Redis' start. With the number, the text would be another doubt at each inspection.
    if let count = reply.info("evicted_keys"), count != "0" {
      doubts.append(
        "it has evicted keys, which may have been records: set noeviction, and CONFIG RESETSTAT after it")
    }
  }

  private mutating func take(_ reply: RedisValue, toTrialOf right: RedisRights.Right, _ namespace: String) {
    guard let text = reply.error else { return }
    if RedisRefusal.isScriptMissing(text) { lacksScript = true }
    guard obstacle == nil, right.rule != "+eval" || lacksScript,
      let rule = right.missingRule(by: text, namespace)
    else { return }
    let object = rule.hasPrefix("~") ? "the keys of \(namespace)" : right.command[0]
    obstacle = "Redis forbids \(object) to Semel's user: allow \(rule) in its ACL (\(text))"
  }

  func joined(with other: RedisFacts) -> RedisFacts {
    var all = self
    all.run = nil
    all.doubts += other.doubts
    all.publishRefusal = publishRefusal ?? other.publishRefusal
    all.obstacle = obstacle ?? other.obstacle
    all.epochs.merge(other.epochs) { own, _ in own }
    return all
  }
}

extension RedisPipeline {
  /// Inspects Redis over this connection; `onFacts` gets `nil` if it was lost meanwhile.
  func inspect(factsKey: String, _ onFacts: @escaping (RedisFacts?) -> Void) {
    guard let claimDigest else { return onFacts(nil) }
    let steps = RedisFacts.steps(keys, factsKey: factsKey, digest: claimDigest)
    var facts: RedisFacts? = RedisFacts()
    for (index, step) in steps.enumerated() {
      let sentAt = BootInstant.now
      query(step.command) { reply in
        if case .clock = step, let reply { self.takeTime(reply, sentAt: sentAt) }
        if let reply { facts?.take(reply, to: step) } else { facts = nil }
        guard index == steps.count - 1 else { return }
        if let history = facts?.history { self.met(history) }
        onFacts(facts.map(self.named))
      }
    }
  }
}
