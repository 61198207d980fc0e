import Idempotency
import NIOCore
import Platform

// The wait for memory for a response.
extension Delivery {
  /// The longest wait for room in the share of captures, in milliseconds: several captures end in that time.
  private static var maxCaptureWait: Int64 { 1000 }
  /// The time between two tries for room, in milliseconds.
  private static var capturePause: Int64 { 10 }

  /// As `mayCapture(_:)`, but waits up to a second for the end of other captures.
  func mayCapture(_ count: Int, within span: Milliseconds) async -> Bool {
    // The limit is random, so that one of several captures that wait for each other gives up first.
    let maxWait = Int64.random(in: Self.maxCaptureWait / 2...Self.maxCaptureWait)
    let end = NIODeadline.now() + .milliseconds(min(span.count / 2, maxWait))
    while !mayCapture(count) {
      guard NIODeadline.now() < end else { return false }
      _ = await Signal(timers: timers).wait(milliseconds: Self.capturePause)
    }
    return true
  }
}
