/// A wake-up for one waiting task of a loop: set once or often, taken by one waiter at a time.
///
/// Confined to its loop. A signal given while nobody waits is kept, not lost.
public final class Signal: @unchecked Sendable {
  /// How a wait ended.
  public enum Ending: Sendable { case signalled, timedOut }

  private let timers: LoopTimers
  private var isSet = false
  private var waiter: UnsafeContinuation<Ending, Never>?
  private var timer: LoopTimers.Token?

  public init(timers: LoopTimers) { self.timers = timers }

  /// Wakes the waiter, or the next one that comes.
  public func set() {
    guard waiter != nil else {
      isSet = true
      return
    }
    end(.signalled)
  }

  /// Waits for `set`, at most this long; for ever where no span is given.
  public func wait(milliseconds: Int64? = nil) async -> Ending {
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
