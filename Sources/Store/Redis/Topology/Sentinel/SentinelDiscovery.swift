import Wire

/// The search for the master through the Sentinels, each in turn. Pure.
struct SentinelDiscovery {
  enum Action: Equatable {
    /// Connect to this Sentinel, if no connection to it stands, and ask it for the master.
    case query(ServerAddress)
    /// Use this master, and ask the same Sentinel again later.
    case use(ServerAddress)
    /// No Sentinel names a usable master, for this reason: begin again after a pause.
    case pause(String)
    /// Wait for the next event.
    case wait
  }

  private let sentinels: [ServerAddress]
  private let name: String
  private var current = 0
  /// The number of Sentinels that failed since one of them last named a master that was usable.
  private var failedCount = 0
  /// The failure of each Sentinel in the present round.
  private var reasons: [Int: String] = [:]
  /// The last master that a Sentinel named; `nil` if none did.
  private(set) var master: ServerAddress?
  /// Whether a reply of the present Sentinel is awaited.
  private var isAwaiting = true
  /// Whether a push has named another master since the query whose reply is awaited. That reply may be older.
  private var isReplyOutdated = false

  /// Creates the search.
  ///
  /// - Parameters:
  ///   - sentinels: The Sentinels' addresses, at least one.
  ///   - name: The name under which they know the master.
  init(sentinels: [ServerAddress], name: String) {
    invariant(!sentinels.isEmpty, "a topology of Sentinels without one")
    self.sentinels = sentinels
    self.name = name
  }

  /// The Sentinel whose turn it is.
  var sentinel: ServerAddress { sentinels[current] }

  /// Takes the question that was sent to the present Sentinel.
  mutating func queried() {
    isAwaiting = true
    isReplyOutdated = false
  }

  /// Takes the failure of the present Sentinel: it cannot be reached, refuses the login or does not reply.
  mutating func failed(_ reason: String) -> Action {
    next("Sentinel at \(sentinel) fails: \(reason)")
  }

  /// Takes the reply to `SENTINEL GET-MASTER-ADDR-BY-NAME`.
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

  /// Takes the finding of a connection that a server which a Sentinel named is no master, or cannot be reached. Another
  /// Sentinel may know better.
  mutating func refuted(_ address: ServerAddress, _ reason: String) -> Action {
    guard address == master, !isAwaiting else { return .wait }
    return next("Sentinel at \(sentinel) names \(address), which cannot be used: \(reason)")
  }

  /// Takes the finding of a connection that the named server is the master.
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
