import NIOCore

/// The executor, the timers and the sockets that all parts of one event loop share.
public struct EventLoopContext: Sendable {
  public let loop: any EventLoop
  public let executor: LoopExecutor
  public let timers: LoopTimers
  public let sockets: any Sockets

  public init(loop: any EventLoop, sockets: any Sockets = SystemSockets.shared) {
    self.loop = loop
    self.sockets = sockets
    executor = LoopExecutor(loop: loop)
    timers = LoopTimers(executor: executor)
  }

  /// Starts a task that runs on this loop.
  public func task(_ body: @escaping @Sendable () async -> Void) {
    _ = Task(executorPreference: executor) { await body() }
  }

  /// Runs a closure on this loop, from any task, and returns its result.
  ///
  /// The closure runs in a task of its own. `withTaskExecutorPreference` would begin it on the caller's thread and move
  /// to the loop only at some later `await`; until then, two threads could access what is confined to the loop.
  public func run<Success: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () async throws(Failure) -> Success
  ) async throws(Failure) -> Success {
    try await Task(executorPreference: executor) { () async -> Result<Success, Failure> in
      do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
    }.value.get()
  }

  /// Suspends the task until the loop has run what is ready. `Task.yield` would leave the loop.
  public func yield() async {
    await withUnsafeContinuation { continuation in loop.execute { continuation.resume() } }
  }

  /// Suspends the task for a time, without blocking the loop.
  public func sleep(milliseconds: Int64) async {
    _ = await Signal(timers: timers).wait(milliseconds: milliseconds)
  }
}

/// The turns of an event loop.
public enum LoopTurn {
  /// The time until a later turn: longer than the writes that a turn leads to. The loop runs all that is due before it
  /// looks at its sockets again, and a pause of 100 µs was over before that.
  public static let pause = TimeAmount.milliseconds(1)
}

extension EventLoop {
  /// Runs a closure in a later turn of the loop, once others' sockets were read. Call it on the loop.
  ///
  /// The pause begins behind the work of this turn.
  public func inLaterTurn(_ body: @escaping () -> Void) {
    let loop = assumeIsolated()
    loop.execute { _ = loop.scheduleTask(in: LoopTurn.pause) { body() } }
  }
}

/// A pause that doubles with each failure, up to a maximum. Its unit is the caller's.
public struct Backoff: Equatable, Sendable {
  private let first: Int64
  private let max: Int64
  private var pause: Int64

  public init(first: Int64, max: Int64) {
    self.first = first
    self.max = max
    pause = first
  }

  /// Returns the pause after a failure, and doubles the next one.
  public mutating func next() -> Int64 {
    defer { pause = min(pause * 2, max) }
    return pause
  }

  /// Begins anew after a success.
  public mutating func reset() { pause = first }
}

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
