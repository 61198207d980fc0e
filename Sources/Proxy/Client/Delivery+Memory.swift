import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

extension Delivery {
  /// Counts the memory of the head, once, until the run's end: the request was not over at its start.
  func countHead() {
    if isRunning { memory.countHead() }
  }

  /// The longest wait for room in the share of captures, in milliseconds: several captures end in that time.
  private static var maxCaptureWait: Int64 { 1000 }
  /// The time between two tries for room, in milliseconds.
  private static var capturePause: Int64 { 10 }

  /// Takes memory so that `count` bytes of a response may be captured in all, and waits up to a second for the end of
  /// other captures; false if there is none.
  func mayCapture(_ count: Int, within span: Milliseconds) async -> Bool {
    // The limit is random, so that one of several captures that wait for each other gives up first.
    let maxWait = Int64.random(in: Self.maxCaptureWait / 2...Self.maxCaptureWait)
    let end = NIODeadline.now() + .milliseconds(min(span.count / 2, maxWait))
    while !memory.growCapture(to: count) {
      guard NIODeadline.now() < end else { return false }
      _ = await Signal(timers: timers).wait(milliseconds: Self.capturePause)
    }
    return true
  }
}

extension Delivery: ResponseMemory {
  var mayReadAhead: Bool { memory.connection.mayReadAhead }

  func waitingChanged(by bytes: Int) {
    timers.assertOnLoop()
    memory.connection.changeUnread(by: bytes)
  }
}
