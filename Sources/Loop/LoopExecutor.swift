import NIOCore

/// Runs the tasks of one event loop on that loop, so that a request never changes threads.
///
/// Jobs that become ready on the loop stand in a queue of their own, emptied by `drain()`: the shells
/// (channel handlers, the transport's drive) call it at the end of their turn, which saves a wake-up of the
/// loop a job.
public final class LoopExecutor: TaskExecutor, @unchecked Sendable {
  /// A drain stops after so many jobs and goes on in the loop's next turn, so that tasks which yield to each
  /// other without end do not keep the loop from its sockets and timers.
  private static let turnLimit = 1024

  public let loop: any EventLoop
  /// Jobs made ready on the loop and not yet run; touched on the loop alone.
  private var ready: [UnownedJob] = []
  private var isDraining = false
  private var isScheduled = false

  public init(loop: any EventLoop) {
    self.loop = loop
    ready.reserveCapacity(64)
  }

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

  /// Runs what is ready, and what becomes ready by it, up to a limit. On the loop; inside a job it does
  /// nothing.
  public func drain() {
    guard !isDraining, !ready.isEmpty else { return }
    isDraining = true
    var index = 0
    while index < min(ready.count, Self.turnLimit) {
      let job = ready[index]
      index += 1
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
    isDraining = false
    if index == ready.count {
      ready.removeAll(keepingCapacity: true)
    } else {
      ready.removeFirst(index)
      schedule()
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
