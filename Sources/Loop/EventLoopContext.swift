import NIOCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What every part of one event loop shares: its executor and its timers.
public struct EventLoopContext: Sendable {
  public let loop: any EventLoop
  public let executor: LoopExecutor
  public let timers: LoopTimers

  public init(loop: any EventLoop) {
    self.loop = loop
    executor = LoopExecutor(loop: loop)
    timers = LoopTimers(executor: executor)
  }

  /// Starts a task that lives on this loop.
  public func task(_ body: @escaping @Sendable () async -> Void) {
    _ = Task(executorPreference: executor) { await body() }
  }

  /// Runs something on this loop, from whatever task it is asked for, and returns what came of it.
  ///
  /// A task of its own, since `withTaskExecutorPreference` begins its body where the caller is, and comes to the loop
  /// no sooner than at some later `await`: until then what belongs to the loop would be touched by two threads.
  public func run<Success: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () async throws(Failure) -> Success
  ) async throws(Failure) -> Success {
    try await Task(executorPreference: executor) { () async -> Result<Success, Failure> in
      do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
    }.value.get()
  }

  /// Waits without holding the loop.
  public func sleep(milliseconds: Int64) async {
    _ = await Signal(timers: timers).wait(milliseconds: milliseconds)
  }
}

/// The boot-time clock in nanoseconds: it goes on while the machine sleeps and the process is stopped.
public func bootTimeNanoseconds() -> Int64 {
  var time = timespec()
  #if os(Linux)
    clock_gettime(CLOCK_BOOTTIME, &time)
  #else
    clock_gettime(CLOCK_MONOTONIC, &time)
  #endif
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
