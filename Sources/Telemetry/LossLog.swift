import Idempotency
import Logging
import Platform
import Synchronization

/// The lost outcomes that this process knows of, so that each is logged and counted once. An owner that died cannot log
/// its losses, so that whoever first meets its lapsed lease does.
public final class LossLog: Sendable {
  /// The latest attempts that were noted, by their records.
  private struct Notes {
    private var attempts = AgingMap<RecordID, Int>(half: 4096)

    mutating func add(_ id: RecordID, _ attempt: Int) -> Bool {
      guard attempts[id] != attempt else { return false }
      attempts[id] = attempt
      return true
    }
  }

  private let losses = Mutex(Notes())
  private let returns = Mutex(Notes())
  private let logger: Logger

  public init(logger: Logger) { self.logger = logger }

  /// Notes a loss that its owner logs.
  public func note(_ id: RecordID, attempt: Int) {
    _ = losses.withLock { $0.add(id, attempt) }
  }

  /// Logs the loss of a record whose owner's lease has lapsed.
  ///
  /// - Returns: Whether it was logged; false for other records, and for those that were logged before.
  public func noteLapse(_ view: RecordView) -> Bool {
    guard view.cause == .leaseLapsed, case .unknown(_, let attempt) = view.standing,
      losses.withLock({ $0.add(view.id, attempt) })
    else { return false }
    let origin = view.attribution
    logger.warning(
      "the outcome of a request was lost",
      metadata: [
        "record": "\(view.id.text)", "route": "\(origin?.route ?? "")",
        "attempt": .stringConvertible(attempt), "cause": "\(LossCause.leaseLapsed.rawValue)",
        "key": "\(origin?.keyDigest ?? "")", "caller": "\(origin?.callerDigest ?? "")",
        "node": "\(origin?.node ?? "")",
        "reason": "its owner was heard of no more: the process died, or did not reach the store",
      ])
    return true
  }

  /// Notes that a delivery has returned to a record of unknown outcome; false if one had before.
  public func isFirstReturn(to id: RecordID, attempt: Int) -> Bool {
    returns.withLock { $0.add(id, attempt) }
  }
}
