import HTTPTypes
import Idempotency

extension [RoutePolicy] {
  func route(named name: String) throws(AdminError) -> RoutePolicy {
    guard let policy = first(where: { $0.name == name }) else {
      let names = isEmpty ? "none" : map(\.name).joined(separator: ", ")
      throw AdminError(.notFound, "there is no route \(name); there are: \(names)")
    }
    return policy
  }
}

extension RoutePolicy {
  /// The key that an operator's texts make, one for each of its parts.
  func statedKey(_ texts: [String]) throws(AdminError) -> IdempotencyKey {
    let sources = key.from.filter { $0 != .payload }
    try require(!sources.isEmpty, "route \(name) makes its keys of payloads: give the record's id")
    guard sources.contains(where: { $0.parts.count == texts.count }) else {
      let keys = sources.map { Self.text(of: $0.parts) }.joined(separator: " or ")
      let given = "\(texts.count) \(texts.count == 1 ? "is" : "are") given"
      throw AdminError.bad("route \(name) takes a key \(keys), and \(given): give key once for each part")
    }
    try require(!texts.contains(""), "key is empty: give the one that the client sends")
    do throws(Problem) {
      // There may be records of before such keys were refused.
      var policy = key
      policy.placeholders = .accept
      return try policy.key(texts: texts)
    } catch {
      throw AdminError.bad(error.detail)
    }
  }

  private static func text(of parts: [KeySource]) -> String {
    "of \(parts.count) part\(parts.count == 1 ? "" : "s") (\(parts.map(\.text).joined(separator: ", ")))"
  }
}
