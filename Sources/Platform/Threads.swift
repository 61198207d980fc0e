import Dispatch
import Glibc
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
