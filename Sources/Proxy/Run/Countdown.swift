import Platform

/// A number of tasks that one other task waits for. Confined to its loop.
final class Countdown: @unchecked Sendable {
  private var left: Int
  private let isOver: Signal

  init(_ count: Int, timers: LoopTimers) {
    left = count
    isOver = Signal(timers: timers)
  }

  /// Notes the end of one task.
  func countDown() {
    left -= 1
    if left == 0 { isOver.set() }
  }

  /// Waits until all tasks have ended, for at most `milliseconds`.
  func zero(within milliseconds: Int64) async {
    guard left > 0 else { return }
    _ = await isOver.wait(milliseconds: milliseconds)
  }
}
