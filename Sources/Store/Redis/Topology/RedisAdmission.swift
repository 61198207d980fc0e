import Idempotency

enum RedisAdmission: Equatable {
  enum Reason: Equatable {
    /// The configuration is not the namespace's, as this sentence says.
    case otherConfiguration(String)
    /// With `require_durable`, records may be lost or are.
    case loss(String)
    /// Too few replicas have had the server's changes for the time of a call.
    case shortage(String)
    /// The configuration was not yet compared with its namespace's.
    case uncompared
  }

  case open
  case refused(Reason)
  /// Claims wait until then, so that live owners reach the server first.
  case paused(until: BootInstant)
}

struct RedisConditions {
  enum Comparison: Equatable {
    case awaited, accepted
    case refused(String)
  }

  let requiresDurable: Bool
  var comparison: Comparison
  var facts = RedisFacts()
  var loss: String?
  private var pauseEnd: BootInstant?

  init(_ settings: RedisEndpointSettings) {
    requiresDurable = settings.requireDurable
    comparison = settings.awaitsAdmission ? .awaited : .accepted
  }

  /// Takes the facts of an inspection, unless they are those of another run than this connection has met.
  mutating func inspected(_ found: RedisFacts) {
    if let run = facts.run, let other = found.run, run != other { return }
    facts = found
  }

  mutating func pause(until end: BootInstant) { pauseEnd = pauseEnd.map { max($0, end) } ?? end }

  var risk: String? {
    guard requiresDurable else { return nil }
    return loss.map { "require_durable is set, and \($0)" }
      ?? facts.doubts.first.map { "require_durable is set, and this Redis may lose records: \($0)" }
  }

  @inline(__always)  // or each claim copies all facts
  func admission(shortage: String?, at now: BootInstant) -> RedisAdmission {
    if case .refused(let reason) = comparison { return .refused(.otherConfiguration(reason)) }
    if requiresDurable, let risk { return .refused(.loss(risk)) }
    if let shortage { return .refused(.shortage(shortage)) }
    if case .awaited = comparison { return .refused(.uncompared) }
    if let pauseEnd, now < pauseEnd { return .paused(until: pauseEnd) }
    return .open
  }
}

extension RedisAdmission.Reason {
  var text: String {
    switch self {
    case .otherConfiguration(let text), .loss(let text), .shortage(let text): text
    case .uncompared: "the configuration was not yet compared with its namespace's"
    }
  }

  var isOfStore: Bool {
    switch self {
    case .otherConfiguration, .loss: true
    case .shortage, .uncompared: false
    }
  }
}
