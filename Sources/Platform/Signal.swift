/// A wake-up for one waiting task of a loop: it may be set any number of times, and has at most one waiter at a time.
///
/// Confined to its loop. Setting it while nobody waits is remembered: the next wait returns at once.
public final class Signal: @unchecked Sendable {
  /// The end of a wait.
  public enum Ending: Sendable { case signalled, timedOut }

  private let timers: LoopTimers
  private var isSet = false
  private var waiter: UnsafeContinuation<Ending, Never>?
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
    return await withUnsafeContinuation { continuation in
      precondition(waiter == nil, "Signal: a second task waits while one does")
      waiter = continuation
      if let milliseconds {
        timer = timers.start(milliseconds: milliseconds) { [self] in
          timer = nil
          end(.timedOut)
        }
      }
    }
  }

  private func end(_ ending: Ending) {
    if let timer { timers.stop(timer) }
    timer = nil
    let continuation = waiter
    waiter = nil
    continuation?.resume(returning: ending)
  }
}
