import Idempotency

/// The copies of a change that must exist before it counts.
public struct ReplicaDemand: Sendable, Equatable {
  /// The number of replicas that must have the change.
  public var replicas: Int
  /// Whether the master and each of these replicas must have it on disk (`WAITAOF`).
  public var isOnDisk: Bool

  /// Creates a demand; `nil` if a change counts as soon as the master has it in memory.
  public init?(replicas: Int, isOnDisk: Bool = false) {
    guard replicas > 0 || isOnDisk else { return nil }
    self.replicas = replicas
    self.isOnDisk = isOnDisk
  }

  var command: String { isOnDisk ? "WAITAOF" : "WAIT" }

  func words(for span: Milliseconds) -> [String] {
    // Redis reads 0 as no limit.
    let span = "\(max(1, span.count))"
    return isOnDisk ? ["WAITAOF", "1", "\(replicas)", span] : ["WAIT", "\(replicas)", span]
  }

  var trial: [String] { isOnDisk ? ["WAITAOF", "1", "0", "1"] : ["WAIT", "0", "1"] }

  /// Whether a reply to the waiting command says that enough copies exist; `nil` if it is another one.
  func isMet(by reply: RedisValue) -> Bool? {
    switch reply {
    case .integer(let count) where !isOnDisk: return count >= replicas
    case .array(let counts) where isOnDisk && counts.count == 2:
      guard case .integer(let local) = counts[0], case .integer(let remote) = counts[1] else { return nil }
      return local >= 1 && remote >= replicas
    default: return nil
    }
  }

  func isTrial(_ reply: RedisValue) -> Bool { isMet(by: reply) != nil }

  var shortage: String {
    let replicas = "\(replicas) replica\(replicas == 1 ? "" : "s")"
    return switch (isOnDisk, self.replicas) {
    case (true, 0): "Redis has not written the newest changes to its disk (store.durable)"
    case (true, _):
      "fewer than \(replicas) of Redis have the newest changes on disk (store.replicas, store.durable)"
    case (false, _): "fewer than \(replicas) of Redis have the newest changes (store.replicas)"
    }
  }
}
