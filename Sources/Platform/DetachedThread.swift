import Glibc

/// Starts a detached thread for work that blocks: the process does not wait for its end.
///
/// Threads of the concurrency pool and event loops must not block.
public func startThread(_ body: @escaping @Sendable () -> Void) {
  let context = Unmanaged.passRetained(ThreadBody(run: body)).toOpaque()
  var thread = pthread_t()
  let code = pthread_create(&thread, nil, runThread, context)
  precondition(code == 0, "startThread: the system starts no thread (error \(code))")
  pthread_detach(thread)
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
