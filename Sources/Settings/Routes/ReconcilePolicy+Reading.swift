import Idempotency

extension RouteDraft {
  /// Reads `reconcile`.
  mutating func readReconcile(_ section: Section) {
    guard let member = section.member("reconcile") else { return }
    var reconcile = policy.reconcile ?? ReconcilePolicy(path: "")
    member.section { reconcile.read($0) }
    policy.reconcile = reconcile
  }

  /// Refuses a route that reconciles without a query, and a query that would never be sent.
  func checkReconcile(_ section: Section) {
    let isReconciled = policy.onUnknown == .reconcile
    if isReconciled, policy.reconcile == nil, section.isSound("on_unknown") {
      let message = "needs a query: reconcile: {path: \"/v1/orders?request_id={request_id}\"}"
      if let member = section["on_unknown"] {
        member.refuse(message)
      } else {
        section.refuseMissing("reconcile", message)
      }
    }
    if isReconciled, policy.reconcile?.absent == nil, section.isSound("reconcile") {
      section["reconcile"]?.warn(
        "has no absent, so that no request whose response was lost runs again: one that the backend does not know stays "
          + "unknown; name the response to the query by which it states that, and a mark that only the query's handler "
          + "makes: \(ReconcilePolicy.mark)")
    }
    if !isReconciled, section.isSound("on_unknown", "reconcile") {
      section["reconcile"]?.refuse("has no effect without on_unknown: reconcile; take it out, or write that")
    }
  }
}

extension ReconcilePolicy {
  fileprivate mutating func read(_ section: Section) {
    if let target = section.member("path")?.parsed("a path and query", Self.target) {
      path = target
    } else if section["path"] == nil, path.isEmpty {
      section.refuseMissing("path", "is missing: write one such as \"/v1/orders?request_id={request_id}\"")
    }
    if let member = section.member("headers") { readHeaders(member) }
    applied = Self.statuses("applied", section) ?? applied
    if let member = section.member("absent") { readAbsent(member) }
    if section.isSound("applied"), applied.isEmpty {
      section["applied"]?.refuse("must name a status, or no query could ever find the request: write [200]")
    }
    status = section.member("status")?.parsed("a status such as 201", Self.recordedStatus) ?? status
  }

  private static func target(_ text: String) throws(Refusal) -> String {
    guard text.hasPrefix("/"), text.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }) else {
      throw Refusal("must be a path and query that begins with a slash")
    }
    guard text.contains(placeholder) else {
      throw Refusal("must contain \(placeholder), by which the backend finds the request")
    }
    return text
  }

  /// The example of a mark in error messages.
  fileprivate static let mark = "absent: {status: [404], json: {/code: order_not_found}}"

  /// Reads the response that states that there was no request. A list of statuses, as earlier versions took it, has no
  /// mark.
  private mutating func readAbsent(_ member: Value) {
    guard !member.isList else {
      member.refuse(
        "must name a mark that only the handler of the query makes, since a 404 may come from a gateway or a wrong "
          + "path, and the request would run again: write \(Self.mark), or header in place of json")
      return
    }
    var absence = absent ?? Absence()
    member.section { section in
      absence.statuses = Self.statuses("status", section) ?? absence.statuses
      if let member = section.member("header") { absence.headers = Self.fields(member) ?? absence.headers }
      if let member = section.member("json") { absence.members = Self.members(member) ?? absence.members }
      if section.isSound("status"), absence.statuses.isEmpty {
        section["status"]?.refuse("must name a status: write [404]")
      }
      if section.isSound("header", "json"), !absence.hasMark {
        member.refuse(
          "must have a member header or json, by which the handler of the query is known: \(Self.mark)")
      }
    }
    absent = absence
  }

  private static func fields(_ member: Value) -> [Field]? {
    member.members("a mapping such as {X-Order-Lookup: none}")?.compactMap { name, value in
      guard Token.isToken(name) else {
        value.reader.refuse(
          value.path, at: value.keyPosition, "must name a header field, such as X-Order-Lookup")
        return nil
      }
      return value.parsed("a header's value") { (text) throws(Refusal) in text }.map {
        Field(name: name, value: $0)
      }
    }
  }

  private static func members(_ member: Value) -> [Absence.Member]? {
    member.members("a mapping such as {/code: order_not_found}")?.compactMap { name, value in
      guard name.hasPrefix("/"), JSONPointer(name) != nil else {
        value.reader.refuse(
          value.path, at: value.keyPosition, "must be a JSON pointer that begins with a slash, such as /code")
        return nil
      }
      return value.parsed("a text, a number, true or false") { (text) throws(Refusal) in text }
        .map { Absence.Member(pointer: name, value: $0) }
    }
  }

  /// The fields that frame the query, belong to its connection or state its target.
  private static let ownHeaders: Set<String> = [
    "host", "content-length", "transfer-encoding", "content-encoding", "connection", "keep-alive", "te",
    "trailer", "upgrade", "expect", "accept-encoding", "proxy-connection", "http2-settings",
  ]

  private mutating func readHeaders(_ member: Value) {
    guard let members = member.members("a mapping such as {Authorization: \"Bearer x\"}") else { return }
    var names: Set<String> = []
    headers = members.compactMap { name, value in
      guard Token.isToken(name) else {
        value.reader.refuse(
          value.path, at: value.keyPosition, "must name a header field, such as Authorization")
        return nil
      }
      guard !Self.ownHeaders.contains(name.lowercased()), names.insert(name.lowercased()).inserted else {
        value.reader.refuse(
          value.path, at: value.keyPosition,
          "must be a field that Semel does not set itself, and be there once; take it out")
        return nil
      }
      return value.parsed("a header's value") { text throws(Refusal) in
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
          throw Refusal("must be a header's whole value in one line")
        }
        return text
      }.map { Field(name: name, value: $0) }
    }
  }

  private static func statuses(_ name: String, _ section: Section) -> [Int]? {
    section.member(name)?.list("a list such as [200]", of: "a status", Self.status)
  }

  /// A status under which the body of the query's response can be recorded as a success. A replay with 204 leaves the
  /// body out; with 205 clients would not expect one (RFC 9110, section 15.3.6).
  private static func recordedStatus(_ text: String) throws(Refusal) -> Int {
    guard let status = try? status(text), 200...299 ~= status, status != 205 else {
      throw Refusal(
        "must be the status of a success, from 200 to 299 and not 205, since what was applied is recorded and replayed "
          + "under it; write 200 or 201, or 204 for a response without content")
    }
    return status
  }

  private static func status(_ text: String) throws(Refusal) -> Int {
    guard text.utf8.count == 3, let status = Int(text), 200...599 ~= status else {
      throw Refusal("must be a status from 200 to 599")
    }
    return status
  }
}
