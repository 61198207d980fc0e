import Synchronization
import Wire

/// The turns of the large responses that are decoded beside the event loops. What takes few bytes in the store may be
/// large, and is in no count of memory until the loop of its client has it.
final class ExpansionTurns: Sendable {
  private static let budget = 8 << 20

  private struct State {
    var queue = TurnQueue(budget: ExpansionTurns.budget)
    var waiting: [TurnQueue.Place: @Sendable () -> Void] = [:]

    mutating func takeNext() -> (@Sendable () -> Void)? {
      guard let place = queue.takeNext() else { return nil }
      guard let begin = waiting.removeValue(forKey: place) else {
        invariantBroken("the turn of a response comes twice")
      }
      return begin
    }
  }

  private let state = Mutex(State())

  /// Calls `begin` when it is the response's turn, at once or on the thread that ends another one's. `end` must follow.
  func enter(caller: Int, bytes: Int, _ begin: @escaping @Sendable (TurnQueue.Place) -> Void) {
    state.withLock { state in
      let place = state.queue.enter(caller: caller, bytes: bytes)
      state.waiting[place] = { begin(place) }
    }
    beginNext()
  }

  func end(_ place: TurnQueue.Place) {
    state.withLock { $0.queue.end(place) }
    beginNext()
  }

  private func beginNext() {
    while let begin = state.withLock({ $0.takeNext() }) { begin() }
  }
}
