import Idempotency
import Platform
import Synchronization
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
  func run(
    by tasks: Int, _ call: @escaping @Sendable () async throws -> Void, during test: () async throws -> Void
  ) async throws {
    isOver.withLock { $0 = false }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<tasks {
        group.addTask {
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

  /// The end of the first call that ended after this time.
  func firstEnd(after time: BootInstant) -> BootInstant? {
    ends.withLock { $0.filter { $0 > time }.min() }
  }

  /// Forgets the calls so far.
  func reset() { ends.withLock { $0 = [] } }
}

/// Limits to the time of something that depends on the machine's other work, too.
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
}
