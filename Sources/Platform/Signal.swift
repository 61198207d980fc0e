/// A wake-up for one waiter of a loop, a task or a call: it may be set any number of times, and has at most one waiter
/// at a time.
///
/// Confined to its loop. Setting it while nobody waits is remembered: the next wait returns at once.
public final class Signal: @unchecked Sendable {
  /// The end of a wait.
  public enum Ending: Sendable { case signalled, timedOut }

  private enum Waiter {
    case task(UnsafeContinuation<Ending, Never>)
    case call((Ending) -> Void)
  }

  private let timers: LoopTimers
  private var isSet = false
  private var waiter: Waiter?
  private var timer: LoopTimers.Token?

  public init(timers: LoopTimers) { self.timers = timers }

  /// Wakes the waiter; if there is none, the next wait returns at once.
  public func set() {
    timers.assertOnLoop()
    guard waiter != nil else {
      isSet = true
      return
    }
    end(.signalled)
  }

  /// Waits for `set`, for at most the given time; without a limit if it is `nil`.
  public func wait(milliseconds: Int64? = nil) async -> Ending {
    timers.assertOnLoop()
    if isSet {
      isSet = false
      return .signalled
    }
    if let milliseconds, milliseconds <= 0 { return .timedOut }
    return await withUnsafeContinuation { continuation in begin(.task(continuation), milliseconds) }
  }

  /// Calls `act` once, at the next `set` or after the given time. Like a task that waits, it runs at the end of the
  /// loop's turn.
  public func whenSet(milliseconds: Int64, _ act: @escaping (Ending) -> Void) {
    timers.assertOnLoop()
    begin(.call(act), milliseconds)
    if isSet {
      isSet = false
      end(.signalled)
    }
  }

  private func begin(_ next: Waiter, _ milliseconds: Int64?) {
    precondition(waiter == nil, "Signal: a second waiter while there is one")
    waiter = next
    guard let milliseconds else { return }
    timer = timers.start(milliseconds: milliseconds) { [self] in
      timer = nil
      end(.timedOut)
    }
  }

  private func end(_ ending: Ending) {
    if let timer { timers.stop(timer) }
    timer = nil
    let ended = waiter
    waiter = nil
    switch ended {
    case .task(let continuation): continuation.resume(returning: ending)
    case .call(let act): timers.executor.perform { act(ending) }
    case nil: break
    }
  }
}
