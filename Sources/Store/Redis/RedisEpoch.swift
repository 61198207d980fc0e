import Idempotency
import Synchronization

/// Detects that Redis came back without its records, by the namespace's epoch: a random value among its facts, which is
/// created once and is lost with everything else.
///
/// The process has one for all connections. Safe to use from any thread.
final class RedisEpoch: Sendable {
  private struct State {
    var known: String?
    var lossCount = 0
    var loss: String?
  }

  private let state = Mutex(State())

  /// Returns a new epoch.
  static func made() -> String {
    String(UInt64.random(in: .min ... .max), radix: 16) + String(UInt64.random(in: .min ... .max), radix: 16)
  }

  /// Compares Redis' epoch with the known one.
  ///
  /// - Returns: A sentence if the records are gone, once for each loss; otherwise `nil`.
  func lost(by epoch: String) -> String? {
    state.withLock { state in
      defer { state.known = epoch }
      guard let known = state.known, known != epoch else { return nil }
      state.lossCount += 1
      state.loss =
        "Redis came back without the records that it had; restart Semel to go on with the empty store"
      return state.loss
    }
  }

  /// A sentence about the latest loss of records that this process has seen; `nil` if there was none.
  var loss: String? { state.withLock { $0.loss } }
  /// The number of losses that were detected.
  var lossCount: Int { state.withLock { $0.lossCount } }
}
