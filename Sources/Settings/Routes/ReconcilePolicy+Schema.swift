import Idempotency

extension RouteDraft {
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
  static let schema = Schema(ReconcilePolicy(path: ""), check: { $0.check($1) }) {
    Member("path", \.path, .target, "the query's path and query, with `{request_id}`").standard("required")
    Member(
      "headers", \.headers, values: "a mapping of names and values", "the query's fields",
      // Values are credentials.
      show: { .members($0.map { Shown.Member($0.name, .text("(not shown)")) }) }, read: { $0.readHeaders($1) }
    )
    Member(
      "applied", \.applied, .statuses("a list such as [200]"),
      "the statuses by which the request was executed")
    Member(
      "absent", \.absent, values: "a section", "", show: { $0.map(Self.absence.shown) },
      read: { $0.readAbsent($1) }
    ).parts(Self.absence.rows)
    Member("status", \.status, .recordedStatus, "the status of the record").standard("that of the query")
  }

  private func check(_ section: Section) {
    if section["path"] == nil, path.isEmpty {
      section.refuseMissing("path", "is missing: write one such as \"/v1/orders?request_id={request_id}\"")
    }
    if section.isSound("applied"), applied.isEmpty {
      section["applied"]?.refuse("must name a status, or no query could ever find the request: write [200]")
    }
  }

  fileprivate static let mark = "absent: {status: [404], json: {/code: order_not_found}}"

  /// Reads the response that states that there was no request. Earlier versions took a list of statuses.
  private mutating func readAbsent(_ member: Value) {
    guard !member.isList else {
      return member.refuse(
        "must name a mark that only the handler of the query makes, since a 404 may come from a gateway or a wrong "
          + "path, and the request would run again: write \(Self.mark), or header in place of json")
    }
    var absence = absent ?? Absence()
    member.section { Self.absence.read($0, into: &absence) }
    absent = absence
  }

  /// The fields that frame the query, belong to its connection or state its target.
  private static let ownHeaders: Set<String> = [
    "host", "content-length", "transfer-encoding", "content-encoding", "connection", "keep-alive", "te",
    "trailer", "upgrade", "expect", "accept-encoding", "proxy-connection", "http2-settings",
  ]

  private mutating func readHeaders(_ member: Value) {
    var names: Set<String> = []
    let read = member.mapped("a mapping such as {Authorization: \"Bearer x\"}") {
      name, value throws(Refusal) in
      guard Token.isToken(name) else { throw Refusal("must name a header field, such as Authorization") }
      guard !Self.ownHeaders.contains(name.lowercased()), names.insert(name.lowercased()).inserted else {
        throw Refusal("must be a field that Semel does not set itself, and be there once; take it out")
      }
      return value.parsed("a header's value") { text throws(Refusal) in
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
          throw Refusal("must be a header's whole value in one line")
        }
        return text
      }.map { Field(name: name, value: $0) }
    }
    headers = read ?? headers
  }

  fileprivate static let absence = Schema(Absence(), check: { $0.check($1) }) {
    Member("status", \.statuses, .statuses("a list such as [200]"), "the statuses of that response")
    Member("header", \.headers, .fields, "the fields that it has, by which the query's handler is known")
    Member("json", \.members, .members, "the members of its body, by JSON pointers")
  }
}

extension ReconcilePolicy.Absence {
  fileprivate func check(_ section: Section) {
    if section.isSound("status"), statuses.isEmpty {
      section["status"]?.refuse("must name a status: write [404]")
    }
    if section.isSound("header", "json"), !hasMark {
      section.value.refuse(
        "must have a member header or json, by which the handler of the query is known: \(ReconcilePolicy.mark)"
      )
    }
  }
}

extension Notation<String> {
  fileprivate static let target = Notation.text("a path and query", show: { .target($0) }) {
    text throws(Refusal) in
    guard text.hasPrefix("/"), text.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }) else {
      throw Refusal("must be a path and query that begins with a slash")
    }
    guard text.contains(ReconcilePolicy.placeholder) else {
      throw Refusal("must contain \(ReconcilePolicy.placeholder), by which the backend finds the request")
    }
    return text
  }
}

extension Notation<Int> {
  /// A status of success. A replay with 204 leaves the body out; with 205 clients expect none (RFC 9110, 15.3.6).
  fileprivate static let recordedStatus = Notation.text(
    "a status such as 201", values: "200 to 299, but not 205", show: { .number($0) }
  ) { text throws(Refusal) in
    guard text.utf8.count == 3, let status = Int(text), 200...299 ~= status, status != 205 else {
      throw Refusal(
        "must be the status of a success, from 200 to 299 and not 205, since what was applied is recorded and replayed "
          + "under it; write 200 or 201, or 204 for a response without content")
    }
    return status
  }
}

extension Notation<[ReconcilePolicy.Field]> {
  fileprivate static let fields = Notation(
    values: "a mapping such as {X-Order-Lookup: none}",
    read: { member in
      member.mapped("a mapping such as {X-Order-Lookup: none}") { name, value throws(Refusal) in
        guard Token.isToken(name) else { throw Refusal("must name a header field, such as X-Order-Lookup") }
        return value.parsed("a header's value", Token.fieldValue)
          .map { ReconcilePolicy.Field(name: name, value: $0) }
      }
    }, show: { .members($0.map { Shown.Member($0.name, .text($0.value)) }) })
}

extension Notation<[ReconcilePolicy.Absence.Member]> {
  fileprivate static let members = Notation(
    values: "a mapping such as {/code: order_not_found}",
    read: { member in
      member.mapped("a mapping such as {/code: order_not_found}") { name, value throws(Refusal) in
        guard name.hasPrefix("/"), JSONPointer(name) != nil else {
          throw Refusal("must be a JSON pointer that begins with a slash, such as /code")
        }
        return value.text("a text, a number, true or false")
          .map { ReconcilePolicy.Absence.Member(pointer: name, value: $0) }
      }
    }, show: { .members($0.map { Shown.Member($0.pointer, .text($0.value)) }) })
}
