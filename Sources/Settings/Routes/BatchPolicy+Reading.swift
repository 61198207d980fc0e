import Idempotency

extension RouteDraft {
  /// Reads `batch`.
  mutating func readBatch(_ section: Section) {
    guard let member = section.member("batch") else { return }
    var batch = policy.batch ?? BatchPolicy(items: "", key: "", results: "")
    member.section { batch.read($0) }
    policy.batch = batch
  }

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

  /// Refuses `key.from`, of the route or of `defaults`.
  ///
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
    !key.hasFault && key.members("a mapping")?.contains { $0.name == "from" } == true
  }

  private func isInItems(_ part: CallerPart) -> Bool {
    guard let items = policy.batch?.items, case .json(let pointer) = part else { return false }
    return pointer == items || pointer.hasPrefix(items + "/")
  }

  /// The members that cannot be combined with `batch`, with the reasons.
  private var batchConflicts: [(name: String, reason: String)] {
    var conflicts: [(String, String)] = []
    if policy.idempotency != .required {
      conflicts.append(("idempotency", "write idempotency: required, since each item needs a key"))
    }
    if policy.stream { conflicts.append(("stream", "results are put together before the client has any")) }
    if policy.retries != nil {
      conflicts.append(("retries", "a retry would send other items; write retries: off"))
    }
    if policy.onUnknown == .reconcile {
      conflicts.append(("on_unknown", "write hold or retry, since the backend is queried about one request"))
    }
    if policy.onStoreFailure == .open {
      conflicts.append(("on_store_failure", "write closed, since a part of a batch may have run before"))
    }
    if policy.shadow { conflicts.append(("shadow", "only whole requests can be observed")) }
    if policy.explainsMismatch {
      conflicts.append(
        ("fingerprint", "digests of members are kept of whole requests only; take explain out"))
    }
    if policy.contentCoding == .pass {
      conflicts.append(("content_coding", "a compressed response has no results that can be read"))
    }
    if policy.caller?.parts.contains(where: isInItems) == true {
      conflicts.append(("caller", "a part within an item would make its caller that of all others"))
    }
    if policy.match.graphql != nil { conflicts.append(("match", "take graphql out")) }
    return conflicts
  }
}

extension BatchPolicy {
  fileprivate mutating func read(_ section: Section) {
    items = Self.pointer("items", "/orders", section) ?? items
    key = Self.pointer("key", "/request_id", section) ?? key
    results = Self.pointer("results", "/results", section) ?? results
    if section["key"] != nil, key.isEmpty, section.isSound("key") {
      section["key"]?.refuse("must name a member of the item, such as /request_id")
    }
    section.integer("max_items", into: &maxItems, in: 1...1000)
  }

  /// Reads a pointer, which must be given.
  private static func pointer(_ name: String, _ example: String, _ section: Section) -> String? {
    guard let member = section.member(name) else {
      section.refuseMissing(name, "is missing: write a JSON pointer such as \(example)")
      return nil
    }
    return member.parsed("a JSON pointer such as \(example)") { text throws(Refusal) in
      // The empty pointer names the whole text.
      guard !text.isEmpty else { return text }
      guard name == "key" || !text.split(separator: "/").contains(where: { $0.allSatisfy(\.isNumber) }) else {
        throw Refusal("must name members, not places in an array")
      }
      return try JSONPointer.parse(text)
    }
  }
}
