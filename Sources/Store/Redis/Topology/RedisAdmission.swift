import Idempotency

/// Whether claims may be sent over a connection to Redis.
enum RedisAdmission: Equatable {
  enum Reason: Equatable {
    /// The configuration is not the namespace's, as this sentence says.
    case otherConfiguration(String)
    /// With `require_durable`, records may be lost or are, as this sentence says.
    case loss(String)
    /// Too few replicas have had the server's changes for the time of a call, as this sentence says.
    case shortage(String)
    /// The configuration was not yet compared with its namespace's.
    case uncompared
  }

  case open
  case refused(Reason)
  /// Claims wait until then, so that live owners reach the server first.
  case paused(until: BootInstant)
}

/// The conditions under which a connection to Redis admits claims. Pure.
struct RedisConditions {
  /// The comparison of the configuration with that of the namespace.
  enum Comparison: Equatable {
    case awaited, accepted
    case refused(String)
  }

  /// Whether a Redis that may lose records is refused.
  let requiresDurable: Bool
  var comparison: Comparison
  /// The latest facts about this server, or about all of them together.
  var facts = RedisFacts()
  /// A sentence about the latest loss of records; `nil` if there was none.
  var loss: String?
  /// The time until which claims wait; `nil` if they never did.
  private var pauseEnd: BootInstant?

  init(_ settings: RedisEndpointSettings) {
    requiresDurable = settings.requireDurable
    comparison = settings.awaitsAdmission ? .awaited : .accepted
  }

  /// Takes the facts that an inspection has found, unless they are those of another run than this connection has met: it
  /// may have been made after the inspection began, to a server that took over.
  mutating func inspected(_ found: RedisFacts) {
    if let run = facts.run, let other = found.run, run != other { return }
    facts = found
  }

  mutating func pause(until end: BootInstant) { pauseEnd = pauseEnd.map { max($0, end) } ?? end }

  /// The reason to refuse a Redis that may lose records, or has lost them; `nil` if there is none.
  var risk: String? {
    guard requiresDurable else { return nil }
    return loss.map { "require_durable is set, and \($0)" }
      ?? facts.doubts.first.map { "require_durable is set, and this Redis may lose records: \($0)" }
  }

  /// Decides on claims.
  ///
  /// - Parameter shortage: The reason for which too few replicas have the server's changes; `nil` if enough have them.
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
  /// The reason, for callers and operators.
  var text: String {
    switch self {
    case .otherConfiguration(let text), .loss(let text), .shortage(let text): text
    case .uncompared: "the configuration was not yet compared with its namespace's"
    }
  }

  /// Whether it is about the store as a whole, not about one server or one moment.
  var isOfStore: Bool {
    switch self {
    case .otherConfiguration, .loss: true
    case .shortage, .uncompared: false
    }
  }
}
