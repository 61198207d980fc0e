import Idempotency
import NIOCore
import Synchronization
import Wire

/// A command in the writer's queue.
protocol EmbeddedRequest: AnyObject, Sendable {
  /// The bytes of a response that it moves, if it takes turns with others like it; `nil` if it does not.
  var largeBytes: Int? { get }
  /// The number of the caller whose response that is.
  var turn: Int { get }
  /// Marks the command as running. False if its time-out has passed.
  func begin() -> Bool
  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect
  func deliver()
  func fail(_ error: StoreError)
  /// Counts one more tick of the watchdog. Returns those since the command was queued. Called under the queue's lock.
  func countTick() -> Int
  /// Fails the command, since its time-out has passed.
  ///
  /// - Parameter isServing: Whether the writer has run other commands meanwhile.
  func expire(isServing: Bool)
}

extension EmbeddedRequest {
  var largeBytes: Int? { nil }
  var turn: Int { 0 }
}

struct RecordEffect {
  static let none = RecordEffect(hasWritten: false, ended: nil)

  var hasWritten: Bool
  /// The record that was ended or is free now, so that its waiters must look again.
  var ended: RecordID?
}

/// The result of a command and its receiver, which gets it once: from the writer, or from the watchdog.
///
/// The caller's thread owns the result until the command is queued, and then the writer's.
class EmbeddedReply<Response: Sendable>: @unchecked Sendable {
  enum Receiver {
    case task(UnsafeContinuation<Result<Response, StoreError>, Never>)
    /// A function, called on its event loop; without one, on the thread that has the result.
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
    invariant(progress.load(ordering: .relaxed) != .waiting, "a command is answered that has not begun")
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

  /// A command that did not begin never runs; one that did may still be committed.
  func expire(isServing: Bool) {
    let text =
      isServing
      ? "the store has too much to do: a command has waited for longer than store.timeout"
      : "the store's file is locked or its disk is too slow: a command took longer than store.timeout"
    if progress.compareExchange(expected: .waiting, desired: .ended, ordering: .relaxed).exchanged {
      receiver.receive(.failure(isServing ? .busy(text) : .unavailable(text)))
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
final class RecordRequest<Reply: Sendable>: EmbeddedReply<Reply>, EmbeddedRequest, @unchecked Sendable {
  typealias Rule = @Sendable (StoredEntry?, StoreInstant) -> RecordStep<Reply>
  typealias Unreadable = @Sendable (Int, StoreInstant) -> RecordStep<Reply>

  private let id: RecordID
  private let rule: Rule
  /// The rule for a row that cannot be read, which gets the row's attempt. Without it, such a row is an error.
  private let unreadable: Unreadable?
  private let readsResponse: Bool
  let largeBytes: Int?
  let turn: Int

  init(
    _ id: RecordID, reply: Receiver, unreadable: Unreadable? = nil, load: RequestLoad = .small,
    _ rule: @escaping Rule
  ) {
    self.id = id
    self.rule = rule
    self.unreadable = unreadable
    switch load {
    case .state: (readsResponse, largeBytes, turn) = (false, nil, 0)
    case .small: (readsResponse, largeBytes, turn) = (true, nil, 0)
    case .large(let bytes, let turn):
      (readsResponse, largeBytes, self.turn) = (true, bytes, turn)
    }
    super.init(reply)
  }

  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect {
    let found: RecordTable.Found
    do throws(TableError) {
      found = try table.find(id, readsResponse: readsResponse)
    } catch {
      switch error {
      case .sql(let error): throw error
      case .unreadable(let reason):
        table.openRows.putUnreadable(id.digest)
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
    invariant(readsResponse || step.change == .none, "a record is written that was read without its response")
    switch step.change {
    case .none: return .none
    case .delete: try table.remove(id, found)
    case .put(let entry): try table.put(id, entry, over: found)
    }
    return RecordEffect(hasWritten: true, ended: step.change.ends ? id : nil)
  }
}

enum RequestLoad {
  /// It reads the record's state alone.
  case state
  case small
  /// It moves so many bytes of a response, and takes turns with others like it.
  case large(Int, turn: Int)

  /// The size up to which a response is written among the other commands.
  private static let maxSmall = 64 << 10
  /// The size that a response of unknown size counts as.
  static let assumed = 1 << 20

  static func writing(_ outcome: Outcome, turn: Int) -> RequestLoad {
    outcome.size > maxSmall ? .large(outcome.size, turn: turn) : .small
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
