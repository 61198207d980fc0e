import Idempotency

extension RouteDraft {
  /// Takes the key from each item, and refuses what a route with `batch` cannot do.
  mutating func adoptBatch(_ section: Section) {
    guard let batch = policy.batch, let member = section["batch"] ?? section["key"] ?? section["name"] else {
      return
    }
    // Those of `defaults` mean protected routes alone.
    guard policy.isProtected || section["batch"] != nil else {
      policy.batch = nil
      return
    }
    for (name, reason) in batchConflicts where section.isSound(name, "batch") {
      refuse(name, with: reason, in: section, else: member)
    }
    refuseKeySources(section, member)
    policy.key.from = [batch.keySource]
  }

  /// - Parameter member: The place of an error in what the route inherits.
  private func refuseKeySources(_ section: Section, _ member: Value) {
    guard hasKeySources, section.isSound("key", "batch") else { return }
    if let key = section["key"], hasSources(key) {
      key.refuse("has from, but each item of a batch has its key at batch.key; take from out")
    } else if !section.reader.hasRefused("defaults.key") {
      member.refuse(
        "cannot be combined with key.from of the defaults, since each item of a batch has its key at batch.key; "
          + "take from out there, and write it at the other routes")
    }
  }

  /// Refuses what cannot be combined with `batch`: at its member, or by the name of what it comes from.
  private func refuse(_ name: String, with reason: String, in section: Section, else batch: Value) {
    if let member = section[name] {
      member.refuse("cannot be combined with batch: \(reason)")
    } else if name == "idempotency", isOptionalByProfile, let profile = policy.profile {
      if let member = section["profile"] {
        member.refuse("sets idempotency: optional, which cannot be combined with batch: \(reason)")
      } else {
        batch.refuse(
          "cannot be combined with idempotency: optional, which profile: \(profile) of the defaults sets: "
            + reason)
      }
    } else {
      batch.refuse("cannot be combined with \(name) of the defaults: \(reason)")
    }
  }

  private func hasSources(_ key: Value) -> Bool {
    !key.hasFault && key["from"] != nil
  }

  private func isInItems(_ part: CallerPart) -> Bool {
    guard let items = policy.batch?.items, case .json(let pointer) = part else { return false }
    return pointer == items || pointer.hasPrefix(items + "/")
  }

  private var batchConflicts: [(name: String, reason: String)] {
    let hasCallerInItems = policy.caller?.alternatives.contains(where: isInItems) == true
    let conflicts: [(isMet: Bool, name: String, reason: String)] = [
      (
        policy.idempotency != .required, "idempotency",
        "write idempotency: required, since each item needs a key"
      ),
      (policy.record == .status, "record", "each item's result is recorded; write record: response"),
      (policy.stream, "stream", "results are put together before the client has any"),
      (policy.retries != nil, "retries", "a retry would send other items; write retries: off"),
      (
        policy.onUnknown == .reconcile, "on_unknown",
        "write hold or retry, since the backend is queried about one request"
      ),
      (
        policy.onStoreFailure == .open, "on_store_failure",
        "write closed, since a part of a batch may have run before"
      ),
      (policy.shadow, "shadow", "only whole requests can be observed"),
      (
        policy.explainsMismatch, "fingerprint",
        "digests of members are kept of whole requests only; take explain out"
      ),
      (
        policy.contentCoding == .pass, "content_coding",
        "a compressed response has no results that can be read"
      ),
      (hasCallerInItems, "caller", "a part within an item would make its caller that of all others"),
      (policy.match.graphql != nil, "match", "take graphql out"),
    ]
    return conflicts.filter(\.isMet).map { ($0.name, $0.reason) }
  }
}

extension BatchPolicy {
  static let schema = Schema(BatchPolicy(items: "", key: "", results: ""), check: { $0.check($1) }) {
    Member("items", \.items, .places("/orders"), "the array of items").required(missing("/orders")).identity()
    Member("key", \.key, .pointer("/request_id"), "the key in an item").required(missing("/request_id"))
      .identity()
    Member("results", \.results, .places("/results"), "the array in the response").required(
      missing("/results"))
    Member("max_items", \.maxItems, .integer(1...1000), "items of a batch")
  }

  private static func missing(_ example: String) -> String {
    "is missing: write a JSON pointer such as \(example)"
  }

  private func check(_ section: Section) {
    if section["key"] != nil, key.isEmpty, section.isSound("key") {
      section["key"]?.refuse("must name a member of the item, such as /request_id")
    }
  }
}

extension Notation<String> {
  fileprivate static func pointer(_ example: String) -> Notation {
    .text("a JSON pointer such as \(example)", show: { .text($0) }) { text throws(Refusal) in
      // The empty pointer names the whole text.
      text.isEmpty ? text : try JSONPointer.parse(text)
    }
  }

  /// A pointer without places in arrays.
  fileprivate static func places(_ example: String) -> Notation {
    let pointer = pointer(example)
    return .text(pointer.values, show: pointer.show) { text throws(Refusal) in
      guard !text.split(separator: "/").contains(where: { $0.allSatisfy(\.isNumber) }) else {
        throw Refusal("must name members, not places in an array")
      }
      return text.isEmpty ? text : try JSONPointer.parse(text)
    }
  }
}
