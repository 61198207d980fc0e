import Dispatch
import GRDB
import Idempotency
import Logging
import Platform
import Synchronization

/// The group commit: all commands that wait run in one transaction, with one wait for the disk. A watchdog ends
/// commands that exceed the time-out, since the writer may be blocked by the disk or by a lock.
final class EmbeddedWriter: Sendable {
  /// The watchdog's ticks within the time-out of a command.
  private static let ticks = 8

  let queue = RequestQueue()
  let waiters = WatchRegistry()
  let figures = Mutex(EmbeddedFigures())
  let monitor: StoreMonitor
  let logger: Logger
  let timeout: Milliseconds
  let logBound: Int
  private let servedAt: ServingTime
  private let clock: StoreClock
  private let watchdog: Watchdog

  init(
    clock: StoreClock, timeout: Milliseconds, logBound: Int, monitor: StoreMonitor, logger: Logger
  ) {
    self.logBound = logBound
    self.monitor = monitor
    self.clock = clock
    self.timeout = timeout
    self.logger = logger
    let (queue, servedAt) = (queue, ServingTime(within: timeout - timeout / 4))
    self.servedAt = servedAt
    watchdog = Watchdog(every: timeout / Int64(Self.ticks)) {
      queue.tick(limit: Self.ticks, isServing: servedAt.isRecent)
    }
  }

  var isServing: Bool { servedAt.isRecent }

  func served() { servedAt.note() }

  func run(on database: Database, _ presence: FilePresence, under lock: FileLock) {
    do {
      let work = try EmbeddedWork(database, presence, lock, clock, of: self)
      work.run()
    } catch {
      logger.critical("store: the writer cannot work", metadata: ["error": "\(error)"])
      queue.close()
      while let group = queue.take(reusing: [], until: .now()) {
        for request in group { request.fail(.unavailable("\(error)")) }
        queue.finish()
      }
    }
    watchdog.cancel()
  }
}

/// The time when the writer last ran commands: while it runs some, a command only takes turns. Safe from any thread.
private final class ServingTime: Sendable {
  private let span: Milliseconds
  private let nanoseconds = Atomic<Int64>(BootInstant.now.nanoseconds)

  init(within span: Milliseconds) { self.span = span }

  func note() { nanoseconds.store(BootInstant.now.nanoseconds, ordering: .relaxed) }

  var isRecent: Bool {
    BootInstant.now - BootInstant(nanoseconds: nanoseconds.load(ordering: .relaxed)) < span
  }
}

/// A repeating timer on a thread that the writer cannot block. Any thread may use a dispatch source.
private final class Watchdog: @unchecked Sendable {
  private let timer: any DispatchSourceTimer

  init(every span: Milliseconds, _ tick: @escaping @Sendable () -> Void) {
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "semel.store.watchdog"))
    let pause = DispatchTimeInterval.milliseconds(max(1, Int(span.count)))
    timer.schedule(deadline: .now() + pause, repeating: pause)
    timer.setEventHandler(handler: tick)
    timer.resume()
  }

  deinit { timer.cancel() }

  func cancel() { timer.cancel() }
}
