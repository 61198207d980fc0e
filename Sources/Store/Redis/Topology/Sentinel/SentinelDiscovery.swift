import Wire

/// The search for the master through the Sentinels, each in turn. Pure.
struct SentinelDiscovery {
  enum Action: Equatable {
    /// Connect to this Sentinel, if it is another one, and ask it for the master.
    case query(ServerAddress)
    /// Use this master, and ask the same Sentinel again later.
    case use(ServerAddress)
    case pause(String)
    case wait
  }

  private let sentinels: [ServerAddress]
  private let name: String
  private var current = 0
  private var failedCount = 0
  private var reasons: [Int: String] = [:]
  private(set) var master: ServerAddress?
  private var isAwaiting = true
  /// Whether a push has named another master since the query, whose reply may be older.
  private var isReplyOutdated = false

  init(sentinels: [ServerAddress], name: String) {
    invariant(!sentinels.isEmpty, "a topology of Sentinels without one")
    self.sentinels = sentinels
    self.name = name
  }

  var sentinel: ServerAddress { sentinels[current] }

  mutating func queried() {
    isAwaiting = true
    isReplyOutdated = false
  }

  mutating func failed(_ reason: String) -> Action {
    next("Sentinel at \(sentinel) fails: \(reason)")
  }

  mutating func received(_ reply: RedisValue) -> Action {
    isAwaiting = false
    switch reply {
    case .array where isReplyOutdated: return .wait
    case .null:
      return next(
        "Sentinel at \(sentinel) knows no master of the name \(name): correct the store's master_name")
    case .error(let text):
      return next("Sentinel at \(sentinel) refuses the question: \(RedisRefusal.advice(text))")
    case .array(let parts):
      guard let found = Self.address(parts) else { fallthrough }
      return take(found)
    default: return next("Sentinel at \(sentinel) replies with something other than an address")
    }
  }

  /// Takes a push about another master: `NAME OLDHOST OLDPORT NEWHOST NEWPORT`.
  mutating func switched(_ payload: String) -> Action {
    let words = payload.split(separator: " ").map { RedisValue.text(String($0)) }
    guard words.count == 5, words[0].text == name, let found = Self.address(Array(words[3...])) else {
      return .wait
    }
    isReplyOutdated = isAwaiting
    return take(found)
  }

  /// Takes the finding that a named server is no master, or cannot be reached. Another Sentinel may know better.
  mutating func refuted(_ address: ServerAddress, _ reason: String) -> Action {
    guard address == master, !isAwaiting else { return .wait }
    return next("Sentinel at \(sentinel) names \(address), which cannot be used: \(reason)")
  }

  mutating func confirmed() {
    failedCount = 0
    reasons = [:]
  }

  private mutating func take(_ found: ServerAddress) -> Action {
    guard found != master else { return .wait }
    master = found
    return .use(found)
  }

  private mutating func next(_ reason: String) -> Action {
    reasons[current] = reason
    failedCount += 1
    current = (current + 1) % sentinels.count
    isAwaiting = true
    guard failedCount % sentinels.count == 0 else { return .query(sentinel) }
    return .pause(reasons.sorted { $0.key < $1.key }.map(\.value).joined(separator: "; "))
  }

  private static func address(_ parts: [RedisValue]) -> ServerAddress? {
    guard parts.count == 2, let host = parts[0].text, !host.isEmpty,
      let port = parts[1].text.flatMap({ Int($0) }),
      1...65535 ~= port
    else { return nil }
    return .tcp(host: host, port: port)
  }
}
