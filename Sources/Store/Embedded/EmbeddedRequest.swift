import Idempotency

/// One caller's command on its way through the writer.
protocol EmbeddedRequest: AnyObject, Sendable {
  /// Runs the command inside the writer's transaction and keeps its answer.
  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect
  /// Tells the caller its answer: after the commit.
  func deliver()
  /// Tells the caller that there is none.
  func fail(_ error: StoreError)
}

/// What running a command did.
struct RecordEffect {
  static let none = RecordEffect(hasWritten: false, ended: nil)

  var hasWritten: Bool
  /// The record that ended, or is free now: whoever waits for it looks again.
  var ended: RecordID?
}

/// A command on one record: a rule, and the caller that waits for what it says.
///
/// Owned by one thread at a time: the caller's until it is queued, the writer's from then on.
final class RecordRequest<Answer: Sendable>: EmbeddedRequest, @unchecked Sendable {
  typealias Rule = @Sendable (StoredEntry?, StoreInstant) -> RecordStep<Answer>
  typealias Unreadable = @Sendable (Int, StoreInstant) -> RecordStep<Answer>
  typealias Reply = UnsafeContinuation<Result<Answer, StoreError>, Never>

  private let id: RecordID
  private let rule: Rule
  /// For a row that cannot be read, by its attempt; without one that is an error.
  private let unreadable: Unreadable?
  private let reply: Reply
  private var result: Result<Answer, StoreError>

  init(_ id: RecordID, reply: Reply, unreadable: Unreadable? = nil, _ rule: @escaping Rule) {
    self.id = id
    self.rule = rule
    self.unreadable = unreadable
    self.reply = reply
    result = .failure(.unavailable("the command was not run"))
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

  func deliver() { reply.resume(returning: result) }

  func fail(_ error: StoreError) { reply.resume(returning: .failure(error)) }
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
