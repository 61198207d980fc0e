import Idempotency
import NIOCore
import Synchronization

/// A caller's command in the writer's queue.
protocol EmbeddedRequest: AnyObject, Sendable {
  /// Marks the command as running. False if its time-out has passed: then it must not run.
  func begin() -> Bool
  /// Runs the command inside the writer's transaction and keeps its result for `deliver`.
  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect
  /// Gives the caller the result. Called after the commit.
  func deliver()
  /// Gives the caller an error.
  func fail(_ error: StoreError)
  /// Counts one more tick of the watchdog and returns the number of ticks since the command was queued. Called under
  /// the queue's lock.
  func countTick() -> Int
  /// Gives the caller an error, because the command's time-out has passed.
  func expire()
}

/// The effect of a command on the table.
struct RecordEffect {
  static let none = RecordEffect(hasWritten: false, ended: nil)

  var hasWritten: Bool
  /// The record that was ended or is free now, so that its waiters must look again.
  var ended: RecordID?
}

/// The result of a command and its receiver, which gets it once: from the writer, or from the watchdog after the
/// time-out.
///
/// One thread owns the result at a time: the caller's thread until the command is queued, and then the writer's.
class EmbeddedReply<Response: Sendable>: @unchecked Sendable {
  /// The receiver of the result.
  enum Receiver {
    case task(UnsafeContinuation<Result<Response, StoreError>, Never>)
    /// A function that is called on its event loop; without one, on the thread that has the result.
    case function(on: (any EventLoop)?, @Sendable (Result<Response, StoreError>) -> Void)

    func receive(_ result: Result<Response, StoreError>) {
      switch self {
      case .task(let continuation): continuation.resume(returning: result)
      case .function(let loop?, let function): loop.execute { function(result) }
      case .function(nil, let function): function(result)
      }
    }
  }

  var result: Result<Response, StoreError> = .notRun
  private let receiver: Receiver
  private let progress = Atomic(RequestProgress.waiting)
  private var ticks = 0

  init(_ receiver: Receiver) { self.receiver = receiver }

  func begin() -> Bool {
    let found = progress.compareExchange(expected: .waiting, desired: .running, ordering: .relaxed)
    return found.original != .ended
  }

  func deliver() {
    let result = result
    // The group lives longer than its commands, and a response may be large.
    self.result = .notRun
    end(result)
  }

  func fail(_ error: StoreError) { end(.failure(error)) }

  func countTick() -> Int {
    ticks += 1
    return ticks
  }

  /// Gives the caller an error. A command that did not begin never runs; one that did may still be committed.
  func expire() {
    let text = "the store's file is locked or its disk is too slow: a command took longer than store.timeout"
    if progress.compareExchange(expected: .waiting, desired: .ended, ordering: .relaxed).exchanged {
      receiver.receive(.failure(.unavailable(text)))
    } else {
      fail(.fateUnknown(text))
    }
  }

  private func end(_ result: Result<Response, StoreError>) {
    guard progress.exchange(.ended, ordering: .relaxed) != .ended else { return }
    receiver.receive(result)
  }
}

extension Result where Failure == StoreError {
  fileprivate static var notRun: Self { .failure(.unavailable("the command was not run")) }
}

private enum RequestProgress: UInt8, AtomicRepresentable {
  /// In the queue. Followed by `running`, or by `ended` after the time-out.
  case waiting
  /// In the writer's transaction. Followed by `ended`.
  case running
  /// The caller has the result.
  case ended
}

/// A command on one record: a rule of `RecordRules`, and the caller that waits for its result.
///
/// `@unchecked`, because its superclass is: its own members are constants, and the superclass' progress is atomic.
final class RecordRequest<Reply: Sendable>: EmbeddedReply<Reply>, EmbeddedRequest, @unchecked Sendable {
  typealias Rule = @Sendable (StoredEntry?, StoreInstant) -> RecordStep<Reply>
  typealias Unreadable = @Sendable (Int, StoreInstant) -> RecordStep<Reply>

  private let id: RecordID
  private let rule: Rule
  /// The rule for a row that cannot be read, which gets the row's attempt. If it is `nil`, such a row is an error.
  private let unreadable: Unreadable?

  init(_ id: RecordID, reply: Receiver, unreadable: Unreadable? = nil, _ rule: @escaping Rule) {
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
    _ step: RecordStep<Reply>, over found: RecordTable.Found, on table: RecordTable
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
  /// Whether no owner holds the record after the change.
  fileprivate var ends: Bool {
    switch self {
    case .none: false
    case .delete, .put(.fence): true
    case .put(.record(let record)):
      if case .inFlight = record.state { false } else { true }
    }
  }
}
