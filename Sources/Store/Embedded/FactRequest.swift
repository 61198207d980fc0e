import Idempotency

/// The reading of a fact of the namespace, or its compare-and-set, in the writer's queue.
final class FactRequest: EmbeddedReply<String?>, EmbeddedRequest, @unchecked Sendable {
  struct Change {
    var expected: String?
    var value: String
  }

  private let fact: NamespaceFact
  private let change: Change?

  init(_ fact: NamespaceFact, _ change: Change?, reply: Receiver) {
    self.fact = fact
    self.change = change
    super.init(reply)
  }

  func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect {
    let value = try table.value(of: fact)
    guard let change, change.expected == value else {
      result = .success(value)
      return .none
    }
    try table.set(fact, to: change.value)
    result = .success(change.value)
    return RecordEffect(hasWritten: true, ended: nil)
  }
}

extension EmbeddedStore: NamespaceFacts {
  public func fact(_ fact: NamespaceFact) async throws(StoreError) -> String? {
    try await submit(fact, nil)
  }

  public func replace(
    _ fact: NamespaceFact, _ expected: String?, with value: String
  ) async throws(StoreError) -> String? {
    try await submit(fact, FactRequest.Change(expected: expected, value: value))
  }

  private func submit(
    _ fact: NamespaceFact, _ change: FactRequest.Change?
  ) async throws(StoreError) -> String? {
    let result = await withUnsafeContinuation { reply in
      let request = FactRequest(fact, change, reply: .task(reply))
      if !queue.add(request) { request.fail(.unavailable("the store is closed")) }
    }
    return try result.get()
  }
}

extension RecordTable {
  func value(of fact: NamespaceFact) throws(SQLError) -> String? {
    statements.selectFact.bind(1, fact.name)
    defer { statements.selectFact.reset() }
    guard try statements.selectFact.step() else { return nil }
    return statements.selectFact.string(0)
  }

  func set(_ fact: NamespaceFact, to value: String) throws(SQLError) {
    statements.replaceFact.bind(1, fact.name)
    statements.replaceFact.bind(2, value)
    try statements.replaceFact.run()
  }
}
