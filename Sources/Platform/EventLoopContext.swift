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
