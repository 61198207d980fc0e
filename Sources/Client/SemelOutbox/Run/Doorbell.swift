import Synchronization

/// A signal for one waiting task. A ring that comes before the wait is not lost.
final class Doorbell: Sendable {
  private struct State {
    var hasRung = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func ring() {
    let waiter = state.withLock { state in
      state.hasRung = state.waiter == nil
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  /// Waits for a ring, for a time, or for the task's cancellation.
  func wait(atMost time: Duration, on clock: any Clock<Duration>) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await clock.sleep(for: time) }
      group.addTask { await self.wait() }
      await group.next()
      group.cancelAll()
    }
  }

  private func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.hasRung || Task.isCancelled {
            state.hasRung = false
            return true
          }
          state.waiter = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { state in
        defer { state.waiter = nil }
        return state.waiter
      }?.resume()
    }
  }
}
