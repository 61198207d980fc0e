import NIOCore
import NIOPosix
import Platform
import TestSupport
import Testing

/// The timers of a loop in real time: never early, and soon after they are due.
struct LoopTimersTests {
  @Test(arguments: [0, 1, 9, 10, 25, 60])
  func `a timer is never early`(milliseconds: Int64) async throws {
    let waited = try await onLoop { context in
      let started = NIODeadline.now()
      await withUnsafeContinuation { continuation in
        _ = context.timers.start(milliseconds: milliseconds) { continuation.resume() }
      }
      return NIODeadline.now() - started
    }
    #expect(waited >= .milliseconds(milliseconds))
    // A loaded machine may be late; a timer that hangs for a turn of the wheel (10 s) is broken.
    #expect(waited < .seconds(8))
  }

  @Test func `a timer that was stopped does not fire, one after it does`() async throws {
    let fired = try await onLoop { context in
      let log = FiredLog()
      let stopped = context.timers.start(milliseconds: 10) { log.names.append("stopped") }
      _ = context.timers.start(milliseconds: 20) { log.names.append("kept") }
      context.timers.stop(stopped)
      await withUnsafeContinuation { continuation in
        _ = context.timers.start(milliseconds: 40) { continuation.resume() }
      }
      context.timers.stop(stopped)
      return log.names
    }
    #expect(fired == ["kept"])
  }

  @Test func `of timers that are due together the first may stop the others`() async throws {
    let fired = try await onLoop { context in
      let rivals = Rivals()
      for number in 1...3 {
        rivals.tokens.append(
          context.timers.start(milliseconds: 10) {
            rivals.fired.append(number)
            rivals.tokens.forEach(context.timers.stop)
          })
      }
      await withUnsafeContinuation { continuation in
        _ = context.timers.start(milliseconds: 40) { continuation.resume() }
      }
      return rivals.fired.count
    }
    #expect(fired == 1)
  }

  @Test func `a timer may start another, also after the wheel stood still`() async throws {
    try await onLoop { context in
      let fired = Watched(0)
      for round in 1...3 {
        _ = context.timers.start(milliseconds: 1) {
          _ = context.timers.start(milliseconds: 1) { fired.withValue { $0 += 1 } }
        }
        try await fired.until("the other timer of round \(round)") { $0 == round ? true : nil }
        // Longer than a tick without a timer: the wheel stands still and has to catch up.
        await withUnsafeContinuation { continuation in
          context.loop.scheduleTask(in: .milliseconds(25)) { continuation.resume() }
        }
      }
    }
  }

  @Test func `a stall that ends just before a timer is due leaves time to read`() async throws {
    let left = try await onLoop { context in
      let due = NIODeadline.now() + .milliseconds(200)
      var end = NIODeadline.now()
      await withUnsafeContinuation { continuation in
        _ = context.timers.start(milliseconds: 200) { continuation.resume() }
        // The stall.
        while end < due - .milliseconds(3) { end = .now() }
      }
      return NIODeadline.now() - end
    }
    #expect(left >= .milliseconds(10))
  }

  @Test func `sleeping lets the loop go on`() async throws {
    let beats = try await onLoop { context in
      async let sleep: Void = context.sleep(milliseconds: 30)
      var beats = 0
      for _ in 0..<10 {
        await Task.yield()
        beats += 1
      }
      await sleep
      return beats
    }
    #expect(beats == 10)
  }
}

/// Touched on one loop alone.
private final class FiredLog: @unchecked Sendable {
  var names: [String] = []
}

/// Timers of which each stops the others.
private final class Rivals {
  var tokens: [LoopTimers.Token] = []
  var fired: [Int] = []
}
