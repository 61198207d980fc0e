import Dispatch
import NIOPosix

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
