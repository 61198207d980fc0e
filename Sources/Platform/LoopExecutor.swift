import Dispatch
import Glibc
import NIOCore
import NIOPosix

/// The executor that runs the tasks of one event loop on that loop, so that a request never changes threads.
///
/// Jobs that become ready on the loop wait in a queue that `drain()` empties. Channel handlers and the transport call
/// it at the end of their turn, which saves one wake-up of the loop per job. Its state is confined to the loop, hence
/// `@unchecked Sendable`.
public final class LoopExecutor: TaskExecutor, @unchecked Sendable {
  /// The time after which a drain leaves the rest to a later turn of the loop. Without it, tasks that always have work,
  /// such as batches of which each item is known already, would keep the loop from its sockets and timers.
  private static let maxTime = TimeAmount.milliseconds(2)

  public let loop: any EventLoop
  /// Jobs that became ready on the loop and have not run yet. Accessed on the loop only.
  private var ready: [UnownedJob] = []
  /// Calls that are due in the same turn. Accessed on the loop only.
  private var calls: [() -> Void] = []
  private var isDraining = false
  private var isScheduled = false
  private var isContinuationDue = false

  public init(loop: any EventLoop) {
    self.loop = loop
    ready.reserveCapacity(64)
  }

  /// Adds a job. Safe from any thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if loop.inEventLoop {
      ready.append(job)
      if !isDraining { schedule() }
    } else {
      loop.execute {
        self.ready.append(job)
        // The drain comes behind the jobs that other threads have added by now, so that its time is for all of them.
        self.schedule()
      }
    }
  }

  /// Makes a call at the end of the loop's turn, before the jobs that are ready then. Call it on the loop.
  public func perform(_ call: @escaping () -> Void) {
    loop.assertInEventLoop()
    calls.append(call)
    if !isDraining { schedule() }
  }

  /// Makes the calls that are due, and runs the jobs that are ready and those that become ready meanwhile. What is left
  /// after some time runs in a later turn; until then only calls are made.
  ///
  /// Call it on the loop. Inside a job it does nothing.
  public func drain() {
    loop.assertInEventLoop()
    guard !isDraining, !ready.isEmpty || !calls.isEmpty else { return }
    isDraining = true
    makeCalls()
    if !isContinuationDue { runJobs() }
    // Calls that jobs made due lead to no further jobs in this turn.
    if isContinuationDue { makeCalls() }
    isDraining = false
    if !calls.isEmpty { schedule() }
  }

  /// Runs jobs until none is ready or the time is over.
  private func runJobs() {
    var count = 0
    var end: NIODeadline?
    while count < ready.count {
      let job = ready[count]
      count += 1
      job.runSynchronously(on: asUnownedTaskExecutor())
      // Most drains have one job, and need no clock.
      guard count < ready.count else { break }
      let now = loop.now
      if let end, now >= end { break }
      end = end ?? now + Self.maxTime
    }
    guard count < ready.count else { return ready.removeAll(keepingCapacity: true) }
    ready.removeFirst(count)
    continueLater()
  }

  private func continueLater() {
    isContinuationDue = true
    loop.inLaterTurn { [self] in
      isContinuationDue = false
      drain()
    }
  }

  private func makeCalls() {
    while !calls.isEmpty {
      // Calls that these cause are made in the next round, into an array of its own.
      let due = calls
      calls.removeAll(keepingCapacity: true)
      for call in due { call() }
    }
  }

  private func schedule() {
    guard !isScheduled else { return }
    isScheduled = true
    loop.execute { self.drainScheduled() }
  }

  private func drainScheduled() {
    isScheduled = false
    drain()
  }
}

/// Threads for work that would hold up an event loop. A simulation does the same work on its only thread, later.
public protocol WorkPool: AnyObject, Sendable {
  func submit(_ work: @escaping @Sendable () -> Void)
}

/// A number of threads, which end with the pool.
public final class ThreadPool: WorkPool {
  private let pool: NIOThreadPool

  public init(threads: Int) {
    pool = NIOThreadPool(numberOfThreads: threads)
    pool.start()
  }

  deinit { pool.shutdownGracefully { _ in } }

  public func submit(_ work: @escaping @Sendable () -> Void) { pool.submit { _ in work() } }
}

/// The threads that the process shares with its libraries.
public final class SharedThreads: WorkPool {
  public static let shared = SharedThreads()

  public func submit(_ work: @escaping @Sendable () -> Void) { DispatchQueue.global().async(execute: work) }
}

/// Starts a detached thread for work that blocks: the process does not wait for its end.
///
/// Threads of the concurrency pool and event loops must not block.
///
/// - Returns: Whether the system has started it. It may not, for instance because a container has a limit of threads.
public func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
  let context = Unmanaged.passRetained(ThreadBody(run: body))
  var thread = pthread_t()
  guard pthread_create(&thread, nil, runThread, context.toOpaque()) == 0 else {
    context.release()
    return false
  }
  pthread_detach(thread)
  return true
}

/// Starts a detached thread without which the process cannot do its work.
public func startNeededThread(_ body: @escaping @Sendable () -> Void) {
  guard startThread(body) else { preconditionFailure("the system starts no thread: raise its limit of them") }
}

private final class ThreadBody: Sendable {
  let run: @Sendable () -> Void

  init(run: @escaping @Sendable () -> Void) { self.run = run }
}

private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let context else { return nil }
  Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
  return nil
}
