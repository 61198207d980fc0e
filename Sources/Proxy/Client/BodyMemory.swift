import Idempotency
import Telemetry

/// The memory for bodies that all event loops share, within `MemoryLimits`.
///
/// Once a backend has run a request, a response that finds no room is lost to every retry. Room must therefore be
/// certain before the claim: uploads and unread responses cannot take the quarter that is for captured responses, and a
/// claim reserves a part of it. A response that outgrows its reservation takes more step by step, and waits a moment
/// where there is none: a capture lasts no longer than its backend sends and the store writes.
final class BodyMemory: Sendable {
  /// The gauges of all bytes, and of responses that wait for their clients.
  let counters: Counters
  /// The captured responses: their reservations, what they take beyond, and outcomes that wait for the store.
  let captured = HolderBudget()
  /// The outcomes among these.
  private let outcomes = HolderBudget()
  /// The bytes that wait at next to no cost to their client: heads and blocks of fields that are not whole, requests
  /// whose bodies are not, duplicates, and HTTP/2 streams whose responses nobody takes.
  let waiting = HolderBudget()
  /// The requests among these.
  let waitingRequests = HolderBudget()

  init(counters: Counters) { self.counters = counters }

  /// Takes memory for an outcome that waits for the store; false if there is none.
  func takeOutcome(_ count: Int, within limits: MemoryLimits) -> Bool {
    guard outcomes.add(count, upTo: limits.outcomes) else { return false }
    guard captured.add(count, upTo: limits.captured.all) else {
      outcomes.subtract(count)
      return false
    }
    counters.change(.bodyBytes, by: count)
    return true
  }

  /// Gives back the memory of an outcome that waits no more.
  func giveOutcome(_ count: Int) {
    outcomes.subtract(count)
    captured.subtract(count)
    counters.change(.bodyBytes, by: -count)
  }

  /// Takes memory for a request that waits: its head, and a place among those in flight. False if there is none.
  func takeRequest(_ count: Int, of client: MemoryHolder, within limits: MemoryLimits) -> Bool {
    guard waitingRequests.take(1, of: client, within: limits.waitingRequests) else { return false }
    guard waiting.take(count, of: client, within: limits.waiting) else {
      waitingRequests.give(1, of: client)
      return false
    }
    return true
  }

  func giveRequest(_ count: Int, of client: MemoryHolder) {
    waitingRequests.give(1, of: client)
    waiting.give(count, of: client)
  }
}
