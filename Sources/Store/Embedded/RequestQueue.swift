import Dispatch
import Idempotency
import Synchronization

/// Where the tasks of all event loops leave their commands, and the writer takes all that wait at once.
final class RequestQueue: Sendable {
  private struct State {
    var waiting: [any EmbeddedRequest] = []
    /// Those that the writer has taken and not finished.
    var taken: [any EmbeddedRequest] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  /// Signalled when the queue is no longer empty, or closed.
  private let wakeUp = DispatchSemaphore(value: 0)

  /// Leaves a command; false where the queue is closed.
  func add(_ request: any EmbeddedRequest) -> Bool {
    let (isAccepted, isFirst) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      state.waiting.append(request)
      return (true, state.waiting.count == 1)
    }
    if isFirst { wakeUp.signal() }
    return isAccepted
  }

  /// Takes no more. What waits is still run.
  func close() {
    let isFirst = state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed
    }
    if isFirst { wakeUp.signal() }
  }

  /// Waits for commands, at most until `deadline`, and takes them all; `nil` once closed and empty. `finish` must
  /// follow once they are done.
  ///
  /// - Parameter group: an empty array, whose memory is used for the commands of the next time.
  func take(reusing group: consuming [any EmbeddedRequest], until deadline: DispatchTime)
    -> [any EmbeddedRequest]?
  {
    _ = wakeUp.wait(timeout: deadline)
    var taken = group
    let isOver = state.withLock { state in
      swap(&state.waiting, &taken)
      state.taken = taken
      return state.isClosed && taken.isEmpty
    }
    return isOver ? nil : taken
  }

  /// The commands that were taken last are done.
  func finish() { state.withLock { $0.taken = [] } }

  /// Counts a tick of the watchdog, and ends the requests that have met as many as `limit`.
  ///
  /// Ticks are counted instead of time, so that a process that was stopped gives its writer a chance first.
  func tick(limit: Int) {
    let expired = state.withLock { state -> [any EmbeddedRequest] in
      guard !(state.waiting.isEmpty && state.taken.isEmpty) else { return [] }
      var expired = state.taken.filter { $0.countTick() >= limit }
      var waiting: [any EmbeddedRequest] = []
      for request in state.waiting {
        if request.countTick() >= limit { expired.append(request) } else { waiting.append(request) }
      }
      // Not kept for a writer that may be held up for long.
      if waiting.count < state.waiting.count { state.waiting = waiting }
      return expired
    }
    for request in expired { request.expire() }
  }
}
