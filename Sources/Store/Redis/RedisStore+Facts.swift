import Idempotency
import Platform
import Wire

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
