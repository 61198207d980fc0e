import Dispatch
import Idempotency
import Synchronization
import Wire

/// The queue between the tasks of all event loops and the writer, which takes all small commands and a bounded part of
/// those that move large responses.
final class RequestQueue: Sendable {
  private static let largeBudget = 1 << 20

  private struct State {
    var waiting: [any EmbeddedRequest] = []
    var taken: [any EmbeddedRequest] = []
    /// The turns of the commands that move large responses, and those that wait for them.
    var turns = TurnQueue(budget: RequestQueue.largeBudget)
    var later: [TurnQueue.Place: any EmbeddedRequest] = [:]
    /// The places of those in `waiting`, and of those in `taken`.
    var admitted: [TurnQueue.Place] = []
    var begun: [TurnQueue.Place] = []
    var isClosed = false

    /// Moves the commands whose turn it is to those that are taken next.
    mutating func admit() {
      while let place = turns.takeNext() {
        admitted.append(place)
        guard let request = later.removeValue(forKey: place) else {
          invariantBroken("the turn comes of a command that does not wait")
        }
        waiting.append(request)
      }
    }
  }

  private let state = Mutex(State())
  private let wakeUp = DispatchSemaphore(value: 0)

  func add(_ request: any EmbeddedRequest) -> Bool {
    let (isAccepted, isFirst) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      let wasEmpty = state.waiting.isEmpty
      if let bytes = request.largeBytes {
        state.later[state.turns.enter(caller: request.turn, bytes: bytes)] = request
        state.admit()
      } else {
        state.waiting.append(request)
      }
      return (true, wasEmpty && !state.waiting.isEmpty)
    }
    if isFirst { wakeUp.signal() }
    return isAccepted
  }

  func close() {
    let isFirst = state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed
    }
    if isFirst { wakeUp.signal() }
  }

  /// Waits for commands, until `deadline` at most, and takes them; `nil` once the queue is closed and empty. `finish`
  /// must follow.
  ///
  /// - Parameter group: An empty array, whose memory is reused for later commands.
  func take(reusing group: consuming [any EmbeddedRequest], until deadline: DispatchTime)
    -> [any EmbeddedRequest]?
  {
    _ = wakeUp.wait(timeout: deadline)
    var taken = group
    let isOver = state.withLock { state in
      invariant(state.taken.isEmpty && state.begun.isEmpty, "commands are taken before others are done")
      swap(&state.waiting, &taken)
      state.taken = taken
      swap(&state.begun, &state.admitted)
      return state.isClosed && taken.isEmpty
    }
    return isOver ? nil : taken
  }

  func finish() {
    let isFirst = state.withLock { state in
      state.taken = []
      guard !state.begun.isEmpty else { return false }
      let wasEmpty = state.waiting.isEmpty
      for place in state.begun { state.turns.end(place) }
      state.begun.removeAll(keepingCapacity: true)
      state.admit()
      return wasEmpty && !state.waiting.isEmpty
    }
    if isFirst { wakeUp.signal() }
  }

  /// Counts a tick of the watchdog, and expires the commands that have waited for `limit` ticks. Ticks are counted
  /// instead of time, so that after a stop of the process the writer gets a chance first.
  func tick(limit: Int, isServing: Bool) {
    let expired = state.withLock { state -> [any EmbeddedRequest] in
      guard !(state.waiting.isEmpty && state.taken.isEmpty && state.later.isEmpty) else { return [] }
      var expired = state.taken.filter { $0.countTick() >= limit }
      var waiting: [any EmbeddedRequest] = []
      for request in state.waiting {
        if request.countTick() >= limit { expired.append(request) } else { waiting.append(request) }
      }
      // Expired commands are dropped, because the writer may be blocked for long.
      if waiting.count < state.waiting.count { state.waiting = waiting }
      for (place, request) in state.later where request.countTick() >= limit {
        state.turns.leave(place)
        state.later[place] = nil
        expired.append(request)
      }
      return expired
    }
    for request in expired { request.expire(isServing: isServing) }
  }
}
