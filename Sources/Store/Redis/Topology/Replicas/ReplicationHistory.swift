import Idempotency

/// The history of a server's data, from `INFO`. Pure.
struct ReplicationHistory: Equatable {
  /// The name of the history that the server writes on. A master that was promoted has a new one.
  var id: String
  /// The name of the history that it has followed until its promotion; `nil` if it was never promoted.
  var formerID: String?
  /// Whether the server follows another one.
  var isOfReplica = false

  /// Reads the reply; `nil` if it is an error.
  init?(_ reply: RedisValue) {
    guard let id = reply.info("master_replid"), !id.isEmpty else { return nil }
    self.id = String(id)
    isOfReplica = reply.info("role") == "slave"
    formerID = reply.info("master_replid2").flatMap { $0.allSatisfy { $0 == "0" } ? nil : String($0) }
  }
}

/// The histories that this process has met: they tell a promoted replica from a server that only restarted. Pure.
struct ReplicationLineage {
  struct Promotion: Equatable {
    /// The time when this process first met the promoted server.
    var at: BootInstant
    /// Whether this is that time.
    var isNew: Bool
  }

  /// The number of histories that are remembered: more than a cluster has masters.
  private static let maxCount = 4096

  /// The time of each history's promotion; `nil` for one that has not begun by a promotion, as far as this process
  /// knows.
  private var promotions: [String: BootInstant?] = [:]

  /// Takes a server's history.
  ///
  /// - Returns: The promotion if the server has taken over from one that this process has met; otherwise `nil`.
  mutating func met(_ history: ReplicationHistory, at now: BootInstant) -> Promotion? {
    if let known = promotions[history.id] { return known.map { Promotion(at: $0, isNew: false) } }
    if promotions.count >= Self.maxCount { promotions = [:] }
    guard let former = history.formerID, promotions[former] != nil else {
      promotions[history.id] = .some(nil)
      return nil
    }
    promotions[history.id] = now
    return Promotion(at: now, isNew: true)
  }
}
