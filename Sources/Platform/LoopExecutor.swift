import NIOCore

/// The executor that runs the tasks of one event loop on that loop, so that a request never changes threads.
///
/// Jobs that become ready on the loop wait in a queue that `drain()` empties. Channel handlers and the transport call
/// it at the end of their turn, which saves one wake-up of the loop per job. Its state is confined to the loop, hence
/// `@unchecked Sendable`.
public final class LoopExecutor: TaskExecutor, @unchecked Sendable {
  /// The maximum number of jobs in one drain, which then continues in the loop's next turn. Without it, tasks that
  /// yield to each other for ever would keep the loop from its sockets and timers.
  private static let turnLimit = 1024

  public let loop: any EventLoop
  /// Jobs that became ready on the loop and have not run yet. Accessed on the loop only.
  private var ready: [UnownedJob] = []
  /// Calls that are due in the same turn. Accessed on the loop only.
  private var calls: [() -> Void] = []
  private var isDraining = false
  private var isScheduled = false

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
        self.drain()
      }
    }
  }

  /// Makes a call at the end of the loop's turn, before the jobs that are ready then. Call it on the loop.
  public func perform(_ call: @escaping () -> Void) {
    loop.assertInEventLoop()
    calls.append(call)
    if !isDraining { schedule() }
  }

  /// Makes the calls that are due, and runs the jobs that are ready and those that become ready meanwhile, up to a
  /// limit.
  ///
  /// Call it on the loop. Inside a job it does nothing.
  public func drain() {
    loop.assertInEventLoop()
    guard !isDraining, !ready.isEmpty || !calls.isEmpty else { return }
    isDraining = true
    makeCalls()
    var index = 0
    while index < min(ready.count, Self.turnLimit) {
      let job = ready[index]
      index += 1
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
    isDraining = false
    if !calls.isEmpty { schedule() }
    if index == ready.count {
      ready.removeAll(keepingCapacity: true)
    } else {
      ready.removeFirst(index)
      schedule()
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
