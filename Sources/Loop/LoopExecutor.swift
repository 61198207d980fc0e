import NIOCore

/// Runs the tasks of one event loop on that loop, so that a request never changes threads.
///
/// Jobs that become ready on the loop stand in a queue of their own, emptied by `drain()`: the shells (channel
/// handlers, the transport's drive) call it at the end of their turn, which saves a wake-up of the loop a job.
package final class LoopExecutor: TaskExecutor, @unchecked Sendable {
  package let loop: any EventLoop
  /// Jobs made ready on the loop and not yet run; touched on the loop alone.
  private var ready: [UnownedJob] = []
  private var isDraining = false
  private var isScheduled = false

  package init(loop: any EventLoop) {
    self.loop = loop
    ready.reserveCapacity(64)
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if loop.inEventLoop {
      ready.append(job)
      guard !isDraining, !isScheduled else { return }
      isScheduled = true
      loop.execute { self.drainScheduled() }
    } else {
      loop.execute {
        self.ready.append(job)
        self.drain()
      }
    }
  }

  /// Runs what is ready, and what becomes ready by it. On the loop; inside a job it does nothing.
  package func drain() {
    guard !isDraining, !ready.isEmpty else { return }
    isDraining = true
    var index = 0
    while index < ready.count {
      let job = ready[index]
      index += 1
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
    ready.removeAll(keepingCapacity: true)
    isDraining = false
  }

  private func drainScheduled() {
    isScheduled = false
    drain()
  }
}
