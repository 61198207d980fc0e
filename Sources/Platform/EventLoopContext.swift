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
