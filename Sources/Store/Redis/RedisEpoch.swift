import Idempotency
import Synchronization
import Wire

/// Detects that Redis came back without its records, by the namespace's epoch: a fact that is created once and is lost
/// with everything else. A cluster has one for each master. The process has one for all connections. Thread-safe.
///
/// The text is `GENERATION.RANDOM`, or `RANDOM` in the first generation. A process that finds a loss begins the next
/// generation, in which the attempt numbers of new records begin higher than any before: they fence the owners of lost
/// records off. A loss while no process lives is not found.
///
/// If its clock is set forwards beyond their end, Redis forgets its records and keeps the epoch: `expired`.
final class RedisEpoch: Sendable {
  /// The maximum generation: attempt numbers have 14 digits at most, which Lua writes exactly.
  private static let maxGeneration = 9999

  struct Finding: Equatable {
    /// A sentence if records are gone, once for each loss.
    var loss: String?
    var replacement: Replacement?
  }

  struct Replacement: Equatable {
    let key: String
    let epoch: String
    let successor: String
  }

  private struct Known {
    var epoch: String
    /// The one that it has replaced.
    var replaced: String?
    /// The one that must replace it, and is not written yet.
    var successor: String?
  }

  private struct State {
    var known: [String: Known] = [:]
    var generation = 0
    var lossCount = 0
    var loss: String?

    mutating func lost(_ loss: String) {
      lossCount += 1
      self.loss = loss
    }

    /// Begins the next generation, and returns the replacement of its epoch.
    mutating func beginGeneration(under key: String?) -> Replacement? {
      generation = min(generation + 1, RedisEpoch.maxGeneration)
      guard let key else { return nil }
      known[key]?.successor = "\(generation).\(RedisEpoch.made())"
      return replacement(under: key)
    }

    func replacement(under key: String) -> Replacement? {
      guard let known = known[key], let successor = known.successor else { return nil }
      return Replacement(key: key, epoch: known.epoch, successor: successor)
    }
  }

  private let state = Mutex(State())
  private let base = Atomic<Int>(0)

  static func made() -> String {
    String(UInt64.random(in: .min ... .max), radix: 16) + String(UInt64.random(in: .min ... .max), radix: 16)
  }

  func seen(_ epoch: String, under key: String) -> Finding {
    state.withLock { state in
      defer { publish(state) }
      let generation = Self.generation(of: epoch)
      guard let known = state.known[key] else {
        state.known[key] = Known(epoch: epoch)
        state.generation = max(state.generation, generation)
        return Finding()
      }
      // An epoch that was read before its replacement may arrive here after it.
      if epoch == known.replaced { return Finding() }
      if epoch == known.epoch { return Finding(replacement: state.replacement(under: key)) }
      if known.successor != nil, generation == state.generation {
        // Another process has found the same loss, and was quicker to replace the epoch.
        state.known[key] = Known(epoch: epoch, replaced: known.epoch)
        return Finding()
      }
      state.known[key] = Known(epoch: epoch, replaced: known.replaced)
      let loss =
        "Redis came back without the records that it had; put its file back if you can, and restart Semel"
      state.lost(loss)
      guard generation <= state.generation else {
        // Another process has found the same loss before.
        state.generation = generation
        return Finding(loss: loss)
      }
      return Finding(loss: loss, replacement: state.beginGeneration(under: key))
    }
  }

  func expired() -> Finding {
    state.withLock { state in
      defer { publish(state) }
      let loss =
        "Redis' clock was set forwards by more than outcomes are remembered, so that they have expired; set it right, and restart Semel"
      state.lost(loss)
      return Finding(loss: loss, replacement: state.beginGeneration(under: state.known.keys.min()))
    }
  }

  /// Takes the replacement of an epoch, by any process.
  func replaced(_ epoch: String, by present: String, under key: String) {
    state.withLock { state in
      defer { publish(state) }
      guard state.known[key]?.epoch == epoch else { return }
      state.known[key] = Known(epoch: present, replaced: epoch)
      state.generation = max(state.generation, RedisEpoch.generation(of: present))
    }
  }

  private func publish(_ state: borrowing State) {
    invariant(
      0...Self.maxGeneration ~= state.generation,
      "attempt numbers begin where Lua no longer writes them exactly")
    base.store(state.generation * Claim.attemptsPerGeneration, ordering: .relaxed)
  }

  private static func generation(of epoch: String) -> Int {
    let parts = epoch.split(separator: ".")
    guard parts.count == 2, let generation = Int(parts[0]) else { return 0 }
    return min(max(generation, 0), maxGeneration)
  }

  var firstAttempt: Int { base.load(ordering: .relaxed) + 1 }
  var loss: String? { state.withLock { $0.loss } }
  var lossCount: Int { state.withLock { $0.lossCount } }
}
