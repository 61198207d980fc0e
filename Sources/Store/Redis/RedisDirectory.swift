import Idempotency

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
