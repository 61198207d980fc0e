import Idempotency
import Platform
import Wire

/// The commands of operators.
extension RedisStore {
  public func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    let token = OwnerToken.random()
    let capacity = 256 + keys.invalidations.utf8.count
    var isRepeated = false
    let reply = try await nodes.run(.forget, .record(id), capacity: capacity) { writer, deadline in
      writer.token(argument: token)
      writer.argument { $0.span(fence) }
      writer.argument(keys.invalidations)
      writer.argument { $0.digest(id.digest) }
      writer.argument(deadline.milliseconds)
      writer.argument(deadline.milliseconds - (isRepeated ? nodes.settings.timeout.count : 0))
      isRepeated = true
    }
    nodes.publish(id.text, to: keys.invalidations)
    erase(after: reply, of: id)
    nodes.keeper.decided(id)
    guard let result = reply.finalResult else { return true }
    return result.word == .erased
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    let token = OwnerToken.ofOperator()
    let completion: Completion?
    if case .applied(let applied) = try await codec.encoded(resolution, of: id) {
      completion = applied
    } else {
      completion = nil
    }
    let kept = completion.map(RedisCompletion.init)
    let capacity = 680 + (kept?.capacity ?? 0) + keys.invalidations.utf8.count
    let resolve = { () async throws(StoreError) -> ScriptReply in
      try await nodes.run(.resolve, .record(id), capacity: capacity) { writer, deadline in
        writer.token(argument: token)
        writer.argument(completion == nil ? "released" : "completed")
        writer.argument { $0.span(completion?.retention ?? 0) }
        writer.argument { $0.span(completion?.remember ?? 0) }
        writer.argument { kept?.writeEnd(to: &$0) }
        writer.argument { kept?.writeFlags(to: &$0) }
        writer.argument(keys.invalidations)
        writer.argument { $0.digest(id.digest) }
        writer.argument(amending ? "amend" : "")
        writer.argument(deadline.milliseconds)
        writer.argument(attempt.map(String.init) ?? "")
        writer.argument { kept?.writeOwnKeyEnd(token, to: &$0) }
      }
    }
    let reply: ScriptReply
    if let kept {
      reply = try await afterResponse(of: kept, id, token, resolve)
    } else {
      reply = try await resolve()
    }
    nodes.publish(id.text, to: keys.invalidations)
    erase(after: reply, of: id)
    let outcome = try await outcome(of: reply, id)
    if outcome == .done { nodes.keeper.decided(id) }
    if outcome != .done, kept?.place == .ownKey {
      nodes.send(RedisPlainCommand(["DEL", keys.response(id, RedisRecord.responseKey(token))]), id)
    }
    return outcome
  }
}

/// The facts of a namespace in Redis: fields of the hash `NAMESPACE:facts`, which does not expire. Safe from any task.
extension RedisStore: NamespaceFacts {
  public func fact(_ fact: NamespaceFact) async throws(StoreError) -> String? {
    try await run(fact, expected: nil, value: nil)
  }

  public func replace(
    _ fact: NamespaceFact, _ expected: String?, with value: String
  ) async throws(StoreError) -> String? {
    invariant(!value.isEmpty, "a fact without a value")
    return try await run(fact, expected: expected, value: value)
  }

  private func run(
    _ fact: NamespaceFact, expected: String?, value: String?
  ) async throws(StoreError) -> String? {
    try await nodes.context.run { [nodes] () async throws(StoreError) in
      try await nodes.fact(fact, under: nodes.keys.facts, expected: expected, value: value)
    }
  }
}

extension RedisNodes {
  /// Reads a fact, or sets it if it has the expected value, `nil` for none. Returns its value afterwards.
  func fact(
    _ fact: NamespaceFact, under key: String, expected: String?, value: String?
  ) async throws(StoreError) -> String? {
    // To the script an empty word is none.
    let words = [key, fact.name, expected ?? "", value ?? ""]
    let capacity = words.reduce(0) { $0 + $1.utf8.count + 16 }
    let reply = try await run(.fact, .key(key), capacity: capacity) { writer, _ in
      for word in words { writer.argument(word) }
    }
    guard let text = reply.result?.text else {
      throw .unreadable("Redis' reply to a question for a fact is not a fact")
    }
    return text.isEmpty ? nil : text
  }
}

/// The count of open records, which all nodes on one Redis share under two keys that expire. Safe to use from any task.
extension RedisStore: OpenRecordBoard {
  private static var wishSpan: Milliseconds { .seconds(86_400) }

  public func lastCount() async throws(StoreError) -> String? {
    try await reply(to: ["GET", keys.census]).text
  }

  public func takeTurn(_ token: OwnerToken, for span: Milliseconds) async throws(StoreError) -> Bool {
    let (turn, own) = (keys.censusTurn, "\(token.high) \(token.low)")
    if try await reply(to: ["SET", turn, own, "NX", "PX", "\(span.count)"]).text != nil { return true }
    guard try await reply(to: ["GET", turn]).text == own else { return false }
    _ = try await reply(to: ["PEXPIRE", turn, "\(span.count)"])
    return true
  }

  public func wishRepair() async throws(StoreError) {
    _ = try await reply(to: ["SET", keys.repairWish, "1", "PX", "\(Self.wishSpan.count)"])
  }

  public func takeRepairWish() async throws(StoreError) -> Bool {
    guard try await reply(to: ["GET", keys.repairWish]).text != nil else { return false }
    _ = try await reply(to: ["DEL", keys.repairWish])
    return true
  }

  public func post(_ count: String, for span: Milliseconds) async throws(StoreError) {
    _ = try await reply(to: ["SET", keys.census, count, "PX", "\(span.count)"])
  }
}

/// The namespaces of one Redis database: a hash that they share and that does not expire. A user of Redis who may
/// access only the keys of one namespace is refused; Semel does without it then. Safe to use from any task.
extension RedisStore: NamespaceDirectory {
  private static var directory: String { "semel:namespaces" }

  public func configurations() async throws(StoreError) -> [String: String] {
    guard case .array(let members) = try await reply(to: ["HGETALL", Self.directory]) else { return [:] }
    var digests: [String: String] = [:]
    for index in stride(from: 1, to: members.count, by: 2) {
      if let name = members[index - 1].text { digests[name] = members[index].text }
    }
    return digests
  }

  public func enter(_ namespace: String, as digest: String) async throws(StoreError) {
    _ = try await reply(to: ["HSET", Self.directory, namespace, digest])
  }
}
