import Dispatch
import Idempotency
import Synchronization

/// The queue between the tasks of all event loops, which add commands, and the writer, which takes all at once.
final class RequestQueue: Sendable {
  private struct State {
    var waiting: [any EmbeddedRequest] = []
    /// The commands that the writer has taken and not finished.
    var taken: [any EmbeddedRequest] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  /// Signalled when the queue is no longer empty, or is closed.
  private let wakeUp = DispatchSemaphore(value: 0)

  /// Adds a command. False if the queue is closed.
  func add(_ request: any EmbeddedRequest) -> Bool {
    let (isAccepted, isFirst) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      state.waiting.append(request)
      return (true, state.waiting.count == 1)
    }
    if isFirst { wakeUp.signal() }
    return isAccepted
  }

  /// Accepts no more commands. Those that wait are still run.
  func close() {
    let isFirst = state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed
    }
    if isFirst { wakeUp.signal() }
  }

  /// Waits for commands, until `deadline` at most, and takes them all; `nil` once the queue is closed and empty.
  ///
  /// Call `finish` when the commands are done.
  ///
  /// - Parameters:
  ///   - group: An empty array, whose memory is reused for later commands.
  ///   - deadline: The end of the wait.
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

  /// Marks the commands that were taken last as done.
  func finish() { state.withLock { $0.taken = [] } }

  /// Counts a tick of the watchdog, and expires the commands that have waited for `limit` ticks.
  ///
  /// Ticks are counted instead of time, so that after a stop of the process the writer gets a chance to proceed first.
  func tick(limit: Int) {
    let expired = state.withLock { state -> [any EmbeddedRequest] in
      guard !(state.waiting.isEmpty && state.taken.isEmpty) else { return [] }
      var expired = state.taken.filter { $0.countTick() >= limit }
      var waiting: [any EmbeddedRequest] = []
      for request in state.waiting {
        if request.countTick() >= limit { expired.append(request) } else { waiting.append(request) }
      }
      // Expired commands are dropped, because the writer may be blocked for long.
      if waiting.count < state.waiting.count { state.waiting = waiting }
      return expired
    }
    for request in expired { request.expire() }
  }
}
