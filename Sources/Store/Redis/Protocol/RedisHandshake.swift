import Idempotency
import Platform
import Wire

enum RedisPurpose {
  case records
  case responses
  case subscriptions
  case sentinel

  var peer: String {
    switch self {
    case .records: "Redis"
    case .responses: "Redis for responses"
    case .subscriptions: "Redis for subscriptions"
    case .sentinel: "Sentinel"
    }
  }
}

/// The commands on a new connection before its first regular command, sent at once, and the evaluation of their
/// replies.
struct RedisHandshake {
  enum Step: Equatable {
    case authenticate(user: String?, password: Secret)
    case select(database: Int)
    /// Reads the server's role, which must be that of a master.
    case role
    case name
    case load(RedisScript)
    case clock
    /// Reads the server's run, its settings, and whose data it has; where copies are demanded, twice: the run must
    /// stay.
    case info
    /// Reads the number of this connection, also twice.
    case identity
    case makeEpoch(key: String, String)
    case readEpoch(key: String)
    case publish(channel: String)
    case wait(ReplicaDemand)
    case trial(RedisRights.Right, namespace: String)

    var command: [String] {
      switch self {
      case .authenticate(let user?, let password): ["AUTH", user, password.revealed]
      case .authenticate(nil, let password): ["AUTH", password.revealed]
      case .select(let database): ["SELECT", "\(database)"]
      case .role: ["ROLE"]
      case .name: ["CLIENT", "SETNAME", "semel"]
      case .load(let script): ["SCRIPT", "LOAD", script.source]
      case .clock: ["TIME"]
      case .info: ["INFO"]
      case .identity: ["CLIENT", "ID"]
      case .makeEpoch(let key, let epoch): ["HSETNX", key, NamespaceFact.epoch.name, epoch]
      case .readEpoch(let key): ["HGET", key, NamespaceFact.epoch.name]
      case .publish(let channel): ["PUBLISH", channel, ""]
      case .wait(let demand): demand.trial
      case .trial(let right, _): right.command
      }
    }
  }

  enum Action: Equatable {
    case wait
    case ready(RedisHandshakeResult)
    case fail(String)
  }

  /// The reason to refuse a proxy that takes each command elsewhere: `WAIT` would wait for the changes of others.
  static let sharedConnection =
    "a proxy stands before Redis that spreads the commands of one connection over several: give the address of Redis itself, or topology: cluster"

  let steps: [Step]
  private var next = 0
  /// Whether the server has replied to a command.
  var hasReply: Bool { next > 0 }
  private var result = RedisHandshakeResult()
  private var identity: RedisValue?

  init(_ settings: RedisEndpointSettings, for purpose: RedisPurpose) throws(RedisLogin.Fault) {
    var steps: [Step] = []
    if let password = try settings.login.currentPassword() {
      steps.append(.authenticate(user: settings.login.user, password: password))
    }
    if settings.database != 0 { steps.append(.select(database: settings.database)) }
    steps.append(.name)
    if purpose != .sentinel, case .sentinel = settings.topology { steps.append(.role) }
    switch purpose {
    case .records:
      steps += RedisScript.allCases.map(Step.load)
      steps += [.clock, .info]
      if let demand = settings.demand { steps += [.identity, .wait(demand)] }
      let facts = RedisKeys(namespace: settings.namespace).facts
      steps += [.makeEpoch(key: facts, RedisEpoch.made()), .readEpoch(key: facts)]
      if settings.demand != nil { steps += [.info, .identity] }
    case .subscriptions:
      steps.append(.publish(channel: RedisKeys(namespace: settings.namespace).invalidations))
    case .responses, .sentinel: break
    }
    self.steps = steps
  }

  mutating func received(_ reply: RedisValue) -> Action {
    invariant(next < steps.count, "a reply after the last step")
    let step = steps[next]
    next += 1
    switch (step, reply) {
    // A server that refuses the name is used all the same, unless it refuses the connection.
    case (.name, .error(let text)) where RedisRefusal.isOfConnection(text):
      return .fail(RedisRefusal.advice(text))
    case (.info, .error(let text)), (.identity, .error(let text)):
      // The next attempt may find out what this one must know.
      if RedisRefusal.isPassing(text) { return .fail(RedisRefusal.advice(text)) }
    case (.info, _):
      if let run = result.facts.run, run != reply.info("run_id") ?? "" { return .fail(Self.sharedConnection) }
    case (.name, _), (.makeEpoch, _), (.readEpoch, _), (.publish, _): break
    case (.identity, _):
      if let identity, identity != reply { return .fail(Self.sharedConnection) }
      identity = reply
    case (_, .error(let text)): return .fail(RedisRefusal.advice(text))
    case (.role, .array(let parts)):
      guard parts.first == .text("master") else {
        return .fail("it is no master but a \(parts.first?.text ?? "server of unknown role")")
      }
    case (.load, .text(let digest)): result.digests.append(digest)
    case (.clock, _) where StoreInstant(reply) != nil: result.now = StoreInstant(reply)
    case (.wait(let demand), _) where demand.isTrial(reply): break
    case (.authenticate, .text), (.select, .text): break
    default: return .fail("Redis replied to \(step.command[0]) with something other than it should")
    }
    result.facts.take(reply, to: step)
    return next == steps.count ? .ready(result) : .wait
  }
}

struct RedisHandshakeResult: Equatable {
  var digests: [String] = []
  var now: StoreInstant?
  var facts = RedisFacts()
}

extension StoreInstant {
  /// Reads the reply to `TIME`, seconds and microseconds as texts; `nil` if no clock shows such a time.
  init?(_ reply: RedisValue) {
    guard case .array(let parts) = reply, parts.count == 2,
      let seconds = parts[0].text.flatMap({ Int64($0) }), let micros = parts[1].text.flatMap({ Int64($0) }),
      1...(1 << 43) ~= seconds, 0..<1_000_000 ~= micros
    else { return nil }
    self.init(received: seconds * 1000 + micros / 1000)
  }
}

extension RedisLogin {
  /// The end of a connection on which the server has not replied to anything.
  enum EarlyEnd {
    case silence
    /// The server has ended the connection, or has sent something other than a reply.
    case refusal
    case failure(any Error)
  }

  /// Returns the question whether the server speaks TLS, for a message about a connection whose end suggests the other
  /// one of the two; empty otherwise. With `hasURL` a URL's scheme decides on TLS.
  func tlsQuestion(after end: EarlyEnd, hasURL: Bool) -> String {
    guard tls != nil else {
      // A server with TLS takes a command for a broken handshake, and ends the connection at once.
      if case .silence = end { return "" }
      return "; does it speak TLS? (\(hasURL ? "rediss://" : "tls in the settings"))"
    }
    switch end {
    case .silence: break
    case .refusal: return ""
    // It responds to a handshake with an error in clear.
    case .failure(let error): guard "\(error)".contains("WRONG_VERSION_NUMBER") else { return "" }
    }
    return "; does it speak TLS? (\(hasURL ? "redis://" : "no tls in the settings") if not)"
  }
}

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
