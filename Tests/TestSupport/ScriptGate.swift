import Glibc

/// A gate in a server's script, which the test opens once for each pass. `@unchecked`, because semaphores are safe from
/// any thread.
package final class ScriptGate: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  package init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  package func open() { sem_post(semaphore) }

  /// Blocks until it was opened; for a script, never for a task.
  package func pass() {
    while sem_wait(semaphore) != 0 {}
  }
}
