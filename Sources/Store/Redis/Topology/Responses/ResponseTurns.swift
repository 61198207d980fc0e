import Idempotency
import Platform
import Wire

/// The turns of one event loop's large responses. Confined to its loop.
final class ResponseTurns {
  /// The bytes that may be on their way at once: what Redis holds for this loop, and what this loop holds of replies that
  /// nobody has counted yet.
  private static let budget = 8 << 20
  /// The time for which a response waits for its turn. Others are then slower than any client's patience.
  static let maxWait: Milliseconds = 5000

  private let timers: LoopTimers
  private var queue = TurnQueue(budget: budget)
  private var waiters: [TurnQueue.Place: Signal] = [:]

  init(timers: LoopTimers) { self.timers = timers }

  /// Waits for a turn, after which `end` must be called; `nil` if that took too long.
  func begin(caller: Int, bytes: Int) async -> TurnQueue.Place? {
    let place = queue.enter(caller: caller, bytes: bytes)
    let signal = Signal(timers: timers)
    waiters[place] = signal
    wakeNext()
    if case .signalled = await signal.wait(milliseconds: Self.maxWait.count) { return place }
    // Its turn may have come with the end of its time.
    guard waiters.removeValue(forKey: place) != nil else { return place }
    queue.leave(place)
    return nil
  }

  func end(_ place: TurnQueue.Place) {
    queue.end(place)
    wakeNext()
  }

  private func wakeNext() {
    while let place = queue.takeNext() {
      guard let waiter = waiters.removeValue(forKey: place) else {
        invariantBroken("the turn comes of a response that does not wait")
      }
      waiter.set()
    }
  }
}
