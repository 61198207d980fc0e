import Idempotency

/// The history of a server's data, from `INFO`. Pure.
struct ReplicationHistory: Equatable {
  /// The name of the history that the server writes on, a new one since its promotion.
  var id: String
  /// The name of the history that it has followed until its promotion.
  var formerID: String?
  var isOfReplica = false

  init?(_ reply: RedisValue) {
    guard let id = reply.info("master_replid"), !id.isEmpty else { return nil }
    self.id = String(id)
    isOfReplica = reply.info("role") == "slave"
    formerID = reply.info("master_replid2").flatMap { $0.allSatisfy { $0 == "0" } ? nil : String($0) }
  }
}

/// The histories that this process has met: they tell a promotion from a restart. Pure.
struct ReplicationLineage {
  struct Promotion: Equatable {
    var at: BootInstant
    var isNew: Bool
  }

  /// More than a cluster has masters.
  private static let maxCount = 4096

  /// The time of each history's promotion; `nil` if it has not begun by one.
  private var promotions: [String: BootInstant?] = [:]

  /// Returns the promotion of a server if it has taken over from one that this process has met.
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
