import Glibc
import Idempotency
import Platform
import Synchronization
import TestSupport
import Testing

/// Calls that several tasks make one after another while a test changes the servers, and the times at which they ended.
final class Load: Sendable {
  private let ends = Mutex<[BootInstant]>([])
  private let isOver = Mutex(false)

  /// The number of calls that have ended.
  var count: Int { ends.withLock { $0.count } }

  /// The longest time in which no call ended, between the first and the last one.
  var longestPause: Milliseconds {
    let ends = ends.withLock { $0.sorted() }
    return zip(ends, ends.dropFirst()).map { $1 - $0 }.max() ?? 0
  }

  /// Runs a test while tasks make calls. Throws if a call fails.
  ///
  /// - Parameter executor: The executor of the calls. That of a loop does not wait for the tasks of other tests.
  func run(
    by tasks: Int, on executor: LoopExecutor, _ call: @escaping @Sendable () async throws -> Void,
    during test: () async throws -> Void
  ) async throws {
    isOver.withLock { $0 = false }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<tasks {
        group.addTask(executorPreference: executor) {
          while !self.isOver.withLock({ $0 }) {
            try await call()
            self.ends.withLock { $0.append(.now) }
          }
        }
      }
      let outcome: Result<Void, any Error>
      do { outcome = .success(try await test()) } catch { outcome = .failure(error) }
      isOver.withLock { $0 = true }
      try await group.waitForAll()
      try outcome.get()
    }
  }

  /// Waits until so many calls have ended.
  func reached(_ count: Int) async throws {
    try await until("\(count) calls have ended") { self.count >= count }
  }

  /// Forgets the calls so far.
  func reset() { ends.withLock { $0 = [] } }
}

/// Limits to the time of something that depends on the machine's other work, too.
///
/// Its beginning and its end are to be taken on an event loop or a thread of their own: a task may wait for seconds
/// until those of other tests leave it a thread.
enum Pace {
  /// The number of rounds. A busy machine may stand still in one of them, and seldom does in all.
  private static let rounds = 3

  /// Expects that a scenario, which can be repeated, takes no longer than this; by its own measure.
  static func within(
    _ limit: Milliseconds, sourceLocation: SourceLocation = #_sourceLocation,
    _ scenario: () async throws -> Milliseconds
  ) async throws {
    var spans: [Milliseconds] = []
    while spans.count < rounds {
      let span = try await scenario()
      if span <= limit { return }
      spans.append(span)
    }
    Issue.record("\(spans.map(\.count)) ms, each more than \(limit.count)", sourceLocation: sourceLocation)
  }

  /// Waits for a condition that no event announces. Returns the time from when on it holds, as a thread of its own
  /// finds it.
  static func time(of what: String, _ isSo: @escaping @Sendable () throws -> Bool) async throws -> BootInstant
  {
    let found = Watched<BootInstant?>(nil)
    let isOver = Atomic(false)
    startNeededThread {
      while !isOver.load(ordering: .relaxed) {
        if (try? isSo()) == true { return found.withValue { $0 = .now } }
        usleep(10_000)
      }
    }
    defer { isOver.store(true, ordering: .relaxed) }
    return try await found.until(what, within: .seconds(30)) { $0 }
  }
}
