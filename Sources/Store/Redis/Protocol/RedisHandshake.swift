import Idempotency
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
