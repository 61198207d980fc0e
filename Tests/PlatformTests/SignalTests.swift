import NIOCore
import NIOPosix
import Platform
import Testing

/// A wake-up for one waiting task.
struct SignalTests {
  @Test func `a signal given while nobody waits is kept for one wait`() async throws {
    try await onLoop { context in
      let signal = Signal(timers: context.timers)
      signal.set()
      signal.set()
      #expect(await signal.wait() == .signalled)
      #expect(await signal.wait(milliseconds: 5) == .timedOut)
    }
  }

  @Test func `a waiting task is woken`() async throws {
    try await onLoop { context in
      let signal = Signal(timers: context.timers)
      context.loop.execute { signal.set() }
      #expect(await signal.wait() == .signalled)
      context.loop.execute { signal.set() }
      #expect(await signal.wait(milliseconds: 60_000) == .signalled)
    }
  }

  @Test func `the timer of a wait that ended does not end the next`() async throws {
    try await onLoop { context in
      let signal = Signal(timers: context.timers)
      context.loop.execute { signal.set() }
      #expect(await signal.wait(milliseconds: 20) == .signalled)
      context.loop.scheduleTask(in: .milliseconds(60)) { signal.set() }
      #expect(await signal.wait(milliseconds: 60_000) == .signalled)
    }
  }

  @Test(arguments: [0, -1])
  func `a wait of no length checks the signal and returns`(milliseconds: Int64) async throws {
    try await onLoop { context in
      let signal = Signal(timers: context.timers)
      #expect(await signal.wait(milliseconds: milliseconds) == .timedOut)
      signal.set()
      #expect(await signal.wait(milliseconds: milliseconds) == .signalled)
    }
  }

  @Test func `a signal that comes after the time-out is kept`() async throws {
    try await onLoop { context in
      let signal = Signal(timers: context.timers)
      #expect(await signal.wait(milliseconds: 1) == .timedOut)
      signal.set()
      #expect(await signal.wait() == .signalled)
    }
  }
}

/// A wake-up for a call.
struct SignalCallTests {
  @Test func `a call comes at the end of the turn in which the signal was given`() async throws {
    try await onLoop { context in
      let signal = Signal(timers: context.timers)
      let ended = Signal(timers: context.timers)
      let steps = Steps()
      signal.whenSet(milliseconds: 60_000) { ending in
        steps.all.append("called, \(ending)")
        ended.set()
      }
      signal.set()
      steps.all.append("set")
      _ = await ended.wait()
      #expect(steps.all == ["set", "called, signalled"])
    }
  }

  @Test func `a signal given before is a call's own`() async throws {
    try await onLoop { context in
      let signal = Signal(timers: context.timers)
      signal.set()
      let ending = await withUnsafeContinuation { continuation in
        signal.whenSet(milliseconds: 60_000) { continuation.resume(returning: $0) }
      }
      #expect(ending == .signalled)
      #expect(await signal.wait(milliseconds: 1) == .timedOut)
    }
  }

  @Test func `a call comes after its time without a signal`() async throws {
    try await onLoop { context in
      let signal = Signal(timers: context.timers)
      let ending = await withUnsafeContinuation { continuation in
        signal.whenSet(milliseconds: 5) { continuation.resume(returning: $0) }
      }
      #expect(ending == .timedOut)
    }
  }

  /// The steps of a test, in their order. Used on one loop.
  private final class Steps: @unchecked Sendable {
    var all: [String] = []
  }
}
