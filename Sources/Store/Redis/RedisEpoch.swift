import Idempotency
import Synchronization

/// Notices that Redis came back without the records that it had, by the epoch that the namespace keeps among its facts:
/// made once, and gone with everything else.
///
/// One for all connections of the process; safe to use from any thread.
final class RedisEpoch: Sendable {
  private struct State {
    var known: String?
    var lossCount = 0
    var loss: String?
  }

  private let state = Mutex(State())

  /// A new epoch.
  static func made() -> String {
    String(UInt64.random(in: .min ... .max), radix: 16) + String(UInt64.random(in: .min ... .max), radix: 16)
  }

  /// Compares what Redis says with what is known.
  /// - Returns: A sentence where records are gone, once for each time.
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

  /// Why the records are gone that this process has seen kept; `nil` where they are not.
  var loss: String? { state.withLock { $0.loss } }
  /// The number of times that this was noticed.
  var lossCount: Int { state.withLock { $0.lossCount } }
}
