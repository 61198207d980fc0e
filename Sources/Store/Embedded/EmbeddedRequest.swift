import Idempotency
import Synchronization

/// One caller's command on its way through the writer.
protocol EmbeddedRequest: AnyObject, Sendable {
  /// Begins its run, or goes on with it. False where the caller has given up: then it must not be run.
  func begin() -> Bool
  /// Runs the command inside the writer's transaction and keeps its response.
  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect
  /// Resumes the caller with the response: after the commit.
  func deliver()
  /// Resumes the caller with an error.
  func fail(_ error: StoreError)
  /// Counts one more tick of the watchdog; the number of ticks since the request came. Under the queue's lock.
  func countTick() -> Int
  /// Resumes the caller because its time is over.
  func expire()
}

/// What running a command did.
struct RecordEffect {
  static let none = RecordEffect(hasWritten: false, ended: nil)

  var hasWritten: Bool
  /// The record that ended, or is free now: whoever waits for it looks again.
  var ended: RecordID?
}

/// The caller's side of a request: resumed once, by the writer or, when its time is over, by the watchdog.
///
/// The response is owned by one thread at a time: the caller's until the request is queued, the writer's from then on.
class EmbeddedReply<Response: Sendable>: @unchecked Sendable {
  typealias Continuation = UnsafeContinuation<Result<Response, StoreError>, Never>

  var result: Result<Response, StoreError> = .failure(.unavailable("the command was not run"))
  private let continuation: Continuation
  private let progress = Atomic(RequestProgress.waiting)
  private var ticks = 0

  init(_ continuation: Continuation) { self.continuation = continuation }

  func begin() -> Bool {
    let found = progress.compareExchange(expected: .waiting, desired: .running, ordering: .relaxed)
    return found.original != .ended
  }

  func deliver() { end(result) }

  func fail(_ error: StoreError) { end(.failure(error)) }

  func countTick() -> Int {
    ticks += 1
    return ticks
  }

  /// A command that was not begun is never run; one that was may yet be committed.
  func expire() {
    let text = "the store's file is locked or its disk is too slow: a command took longer than store.timeout"
    if progress.compareExchange(expected: .waiting, desired: .ended, ordering: .relaxed).exchanged {
      continuation.resume(returning: .failure(.unavailable(text)))
    } else {
      fail(.fateUnknown(text))
    }
  }

  private func end(_ result: Result<Response, StoreError>) {
    guard progress.exchange(.ended, ordering: .relaxed) != .ended else { return }
    continuation.resume(returning: result)
  }
}

private enum RequestProgress: UInt8, AtomicRepresentable {
  /// In the queue. Followed by `running`, or by `ended` where its time is over.
  case waiting
  /// In the writer's transaction. Followed by `ended`.
  case running
  /// Its caller has been resumed.
  case ended
}

/// A command on one record: a rule, and the caller that waits for its outcome.
final class RecordRequest<Answer: Sendable>: EmbeddedReply<Answer>, EmbeddedRequest, @unchecked Sendable {
  typealias Rule = @Sendable (StoredEntry?, StoreInstant) -> RecordStep<Answer>
  typealias Unreadable = @Sendable (Int, StoreInstant) -> RecordStep<Answer>

  private let id: RecordID
  private let rule: Rule
  /// For a row that cannot be read, by its attempt; without one that is an error.
  private let unreadable: Unreadable?

  init(_ id: RecordID, reply: Continuation, unreadable: Unreadable? = nil, _ rule: @escaping Rule) {
    self.id = id
    self.rule = rule
    self.unreadable = unreadable
    super.init(reply)
  }

  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect {
    let found: RecordTable.Found
    do throws(TableError) {
      found = try table.find(id)
    } catch {
      switch error {
      case .sql(let error): throw error
      case .unreadable(let reason):
        guard let unreadable else {
          result = .failure(.unreadable(reason))
          return .none
        }
        let (attempt, found) = try table.findUnreadable(id)
        return try apply(unreadable(attempt, now), over: found, on: table)
      }
    }
    return try apply(rule(found.entry, now), over: found, on: table)
  }

  private func apply(
    _ step: RecordStep<Answer>, over found: RecordTable.Found, on table: RecordTable
  ) throws(SQLError) -> RecordEffect {
    result = .success(step.outcome)
    switch step.change {
    case .none: return .none
    case .delete: try table.remove(id, found)
    case .put(let entry): try table.put(id, entry, over: found)
    }
    return RecordEffect(hasWritten: true, ended: step.change.ends ? id : nil)
  }
}

extension RecordChange {
  /// Whether nobody owns the record after it.
  fileprivate var ends: Bool {
    switch self {
    case .none: false
    case .delete, .put(.fence): true
    case .put(.record(let record)):
      if case .inFlight = record.state { false } else { true }
    }
  }
}
