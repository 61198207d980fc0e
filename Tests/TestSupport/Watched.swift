import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A value that tasks wait on: whoever changes it wakes those whose condition has come true.
package final class Watched<Value: Sendable>: Sendable {
  private struct Waiter: Sendable {
    /// Looks at the value; true once it has what it wants (it then has taken it).
    let attempt: @Sendable (inout Value) -> Bool
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct State: Sendable {
    var value: Value
    var waiters: [Int: Waiter] = [:]
    var nextWaiter = 0
  }

  private let state: NIOLockedValueBox<State>

  package init(_ value: Value) {
    state = NIOLockedValueBox(State(value: value))
  }

  /// Reads or changes the value, and wakes those whose condition holds afterwards.
  @discardableResult
  package func withValue<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    let (result, woken) = try state.withLockedValue { state in
      let result = try body(&state.value)
      var woken: [CheckedContinuation<Bool, Never>] = []
      for (number, waiter) in state.waiters.sorted(by: { $0.key < $1.key }) {
        guard waiter.attempt(&state.value) else { continue }
        state.waiters[number] = nil
        woken.append(waiter.continuation)
      }
      return (result, woken)
    }
    for continuation in woken { continuation.resume(returning: true) }
    return result
  }

  /// The value as it is now.
  package var value: Value { state.withLockedValue { $0.value } }

  /// Waits until `find` yields something, which it may take out of the value.
  ///
  /// - Throws: `TestFailure` that names `what` once `span` is over; `CancellationError` if the task is cancelled, as
  ///   that of a skipped test is.
  @discardableResult
  package func until<Found: Sendable>(
    _ what: @autoclosure () -> String, within span: Duration = .seconds(20),
    _ find: @escaping @Sendable (inout Value) -> Found?
  ) async throws -> Found {
    let found = NIOLockedValueBox<Found?>(nil)
    let number = state.withLockedValue { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    let timer = MultiThreadedEventLoopGroup.singleton.next().scheduleTask(in: TimeAmount(span)) {
      self.giveUp(number)
    }
    defer { timer.cancel() }
    let isFound = await withTaskCancellationHandler {
      await wait(number) { value in
        guard let result = find(&value) else { return false }
        found.withLockedValue { $0 = result }
        return true
      }
    } onCancel: {
      giveUp(number)
    }
    guard isFound, let result = found.withLockedValue({ $0 }) else {
      try Task.checkCancellation()
      throw TestFailure("waited \(span) in vain for \(what())")
    }
    return result
  }

  private func wait(_ number: Int, _ attempt: @escaping @Sendable (inout Value) -> Bool) async -> Bool {
    await withCheckedContinuation { continuation in
      let response: Bool? = state.withLockedValue { state in
        if attempt(&state.value) { return true }
        if Task.isCancelled { return false }
        state.waiters[number] = Waiter(attempt: attempt, continuation: continuation)
        return nil
      }
      if let response { continuation.resume(returning: response) }
    }
  }

  private func giveUp(_ number: Int) {
    state.withLockedValue { $0.waiters.removeValue(forKey: number) }?.continuation.resume(returning: false)
  }
}
