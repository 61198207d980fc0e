import Idempotency

/// Work on the table in the writer's queue, other than a command on one record.
final class TableRequest<Response: Sendable>: EmbeddedReply<Response>, EmbeddedRequest, @unchecked Sendable {
  /// Returns the response, and whether anything was written.
  typealias Done = (result: Result<Response, StoreError>, hasWritten: Bool)
  typealias Work = @Sendable (RecordTable, StoreInstant) throws(SQLError) -> Done

  private let work: Work

  init(reply: Receiver, _ work: @escaping Work) {
    self.work = work
    super.init(reply)
  }

  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect {
    let done = try work(table, now)
    result = done.result
    return RecordEffect(hasWritten: done.hasWritten, ended: nil)
  }
}

extension EmbeddedStore: NamespaceFacts {
  public func fact(_ fact: NamespaceFact) async throws(StoreError) -> String? {
    try await reading { (table, _) throws(SQLError) in try table.value(of: fact) }
  }

  public func replace(
    _ fact: NamespaceFact, _ expected: String?, with value: String
  ) async throws(StoreError) -> String? {
    try await queued { (table, _) throws(SQLError) in
      let found = try table.value(of: fact)
      guard found == expected else { return (.success(found), false) }
      try table.set(fact, to: value)
      return (.success(value), true)
    }
  }

  /// Queues work and waits for its result.
  func queued<Response: Sendable>(
    _ work: @escaping TableRequest<Response>.Work
  ) async throws(StoreError) -> Response {
    let result = await withUnsafeContinuation { enqueue(TableRequest(reply: .task($0), work)) }
    return try result.get()
  }

  func reading<Response: Sendable>(
    _ read: @escaping @Sendable (RecordTable, StoreInstant) throws(SQLError) -> Response
  ) async throws(StoreError) -> Response {
    try await queued { (table, now) throws(SQLError) in (.success(try read(table, now)), false) }
  }
}

extension RecordTable {
  func value(of fact: NamespaceFact) throws(SQLError) -> String? {
    statements.selectFact.bind(1, fact.name)
    defer { statements.selectFact.reset() }
    return try statements.selectFact.step() ? statements.selectFact.string(0) : nil
  }

  func set(_ fact: NamespaceFact, to value: String) throws(SQLError) {
    statements.replaceFact.bind(1, fact.name)
    statements.replaceFact.bind(2, value)
    try statements.replaceFact.run()
  }
}
