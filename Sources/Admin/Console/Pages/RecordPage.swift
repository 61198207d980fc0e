import HTTPTypes
import Hummingbird
import Idempotency
import NIOCore
import Telemetry

/// One record: where it stands, what its next delivery gets, what was seen of it, and what can be done.
struct RecordPage {
  private static let maxBody = 64 << 10
  private static let notices = [
    "applied": "Resolved as applied: the next delivery gets the response that you stated.",
    "not_applied": "Resolved as not applied: the next delivery runs.",
    "forgotten": "Forgotten: the next delivery runs.",
  ]

  let console: Console
  let frame: ConsoleFrame
  let id: RecordID

  private var admin: RecordAdmin { console.recordAdmin }

  func show(_ request: Request) async throws -> Response {
    let done = try request.parameters("done")["done"]
    return try await page(done.flatMap { Self.notices[$0] }, body: nil)
  }

  func showBody(_ context: AdminContext) async throws -> Response {
    guard console.showsBodies else {
      throw AdminError(.forbidden, "Bodies are shown where the configuration has ui: {bodies: true}.")
    }
    guard let response = try await admin.recordedResponse(of: id, by: context.peer) else {
      throw AdminError(.notFound, "The record has no response that can be read.")
    }
    return try await page(nil, body: response)
  }

  func resolve(_ request: Request, _ context: AdminContext) async throws -> Response {
    let form = try await FormFields(of: request)
    guard let outcome = form["outcome"].flatMap(ResolutionDocument.Outcome.init), let reason = form["reason"]
    else {
      throw AdminError.bad("Give a reason, for the audit log.")
    }
    var document = ResolutionDocument(outcome: outcome)
    document.reason = reason
    document.amend = form["amend"] == "true" ? true : nil
    document.attempt = form["attempt"].flatMap { Int($0) }
    if outcome == .applied {
      document.status = form["status"].flatMap { Int($0) }
      document.headers = try Self.fields(form.whole("headers"))
      document.body = form.whole("body").isEmpty ? nil : form.whole("body")
    }
    _ = try await admin.resolve(id, document, by: context.peer)
    return frame.redirect(to: "/records/\(id.text)?done=\(outcome.rawValue)")
  }

  func forget(_ request: Request, _ context: AdminContext) async throws -> Response {
    guard let reason = try await FormFields(of: request)["reason"] else {
      throw AdminError.bad("Give a reason, for the audit log.")
    }
    _ = try await admin.forget(id, by: context.peer, reason: reason)
    return frame.redirect(to: "/records/\(id.text)?done=forgotten")
  }

  private static func fields(_ text: String) throws(AdminError) -> [String: String]? {
    var fields: [String: String] = [:]
    for line in text.split(whereSeparator: \.isNewline) where !String(line).trimmingSpaces.isEmpty {
      guard let colon = line.firstIndex(of: ":") else {
        throw AdminError.bad("A header field is a name, a colon and a value: Content-Type: application/json.")
      }
      fields[String(line[..<colon]).trimmingSpaces] = String(line[line.index(after: colon)...]).trimmingSpaces
    }
    return fields.isEmpty ? nil : fields
  }

  private func page(_ done: String?, body: RecordedResponse?) async throws -> Response {
    let record = try await admin.show(id)
    let danger = try await admin.dangerOfRunning(id)
    var content = view([
      "id": record.id, "short_id": Words.short(record.id), "state": record.state,
      "state_name": Words.state(record.state), "done": done, "warning": record.warning,
      "next_delivery": record.nextDelivery.map { "It \($0.replacing("`", with: ""))." },
      "facts": Self.facts(record),
      "events": events(of: record), "since": admin.journal == nil ? "never" : since,
      "mismatch": record.lastMismatch.map { view(["at": $0.at, "differs": $0.differs]) },
    ])
    content["response"] = response(of: record, body) ?? false
    content.merge(await actions(record, danger)) { own, _ in own }
    return frame.page(.record, content, title: "Record \(Words.short(record.id))")
  }

  private var since: String {
    guard let first = admin.journal?.part(from: 0, max: 1).entries.first else { return "its start" }
    return Timestamp.text(milliseconds: first.time)
  }

  private static func facts(_ record: RecordDocument) -> [View] {
    [
      fact("Id", record.id, code: true), fact("Route", record.route),
      fact("Attempt", record.attempt.map { "\($0)" }), fact("First delivery", record.firstSeen),
      fact("Age", record.ageSeconds.map(Words.span(seconds:))),
      fact("Unknown for", record.unknownForSeconds.map(Words.span(seconds:))),
      fact("Cause", record.cause, code: true),
      fact("Lease ends in", record.leaseLeftSeconds.map(Words.span(seconds:))),
      fact("Last attempt by", record.node), fact("Key's digest", record.keyDigest, code: true),
      fact("Caller's digest", record.callerDigest, code: true),
      fact("Fingerprint", record.recipe, code: true),
      fact("Stated by an operator", record.stated == true ? "yes" : nil),
      fact("Route is shadowed", record.shadowed == true ? "yes: its records decide nothing" : nil),
    ].compactMap(\.self)
  }

  private func response(of record: RecordDocument, _ body: RecordedResponse?) -> View? {
    guard let status = record.status else { return nil }
    let facts = [
      fact("Status", "\(status)"), fact("Header fields", record.fields?.joined(separator: ", ")),
      fact("Body", record.bodyBytes.map { Words.count($0, "byte", "bytes") }),
      fact("In the store", record.storedBytes.map { Words.count($0, "byte", "bytes") }),
      fact("Location", record.location),
      fact("Sealed", record.sealed == true ? "yes, by the client's key" : nil),
      fact("Recorded", record.recordedAt), fact("Replayed until", record.expiresAt),
    ].compactMap(\.self)
    let mayShow = console.showsBodies && frame.mayOperate && record.fields != nil
    return view([
      "facts": facts, "body": body.map { Self.text($0.body) },
      "offers_body": mayShow && body == nil && (record.bodyBytes ?? 0) > 0,
      "no_body": mayShow || record.sealed == true
        ? nil : "Its body is shown to who may change records, where ui: {bodies: true} is set.",
    ])
  }

  private static func text(_ body: ByteBuffer) -> String {
    let text = String(decoding: body.readableBytesView.prefix(maxBody), as: UTF8.self)
    return body.readableBytes > maxBody ? text + "\n… and more" : text
  }
}

extension RecordPage {
  private func events(of record: RecordDocument) -> [View] {
    var events: [(time: String, view: View)] = []
    func add(_ time: String?, _ text: String, _ detail: String = "", _ kind: String = "seen") {
      guard let time else { return }
      events.append(
        (time, view(["time": time, "text": text, "kind": kind, "detail": detail.isEmpty ? nil : detail])))
    }
    add(
      record.firstSeen, "The first delivery claimed the record",
      record.node.map { "the last attempt was made by \($0)" } ?? "")
    for entry in admin.journal?.all ?? [] where entry.record == id {
      let event = RequestDocument(entry)
      add(event.time, Self.sentence(event), Self.detail(event), entry.event == .lost ? "lost" : "seen")
    }
    add(
      record.recordedAt, record.stated == true ? "An operator stated the outcome" : "The outcome was recorded"
    )
    for entry in admin.trail.latest where entry.record == record.id {
      add(entry.time, "An operator: \(entry.action)", entry.reason ?? "", "seen")
    }
    add(record.expiresAt, "The response is replayed until here", "", "later")
    return events.sorted { $0.time < $1.time }.map(\.view)
  }

  private static func sentence(_ event: RequestDocument) -> String {
    if event.event == JournalEntry.Event.lost.rawValue {
      return "The outcome of attempt \(event.attempt ?? 1) was lost"
    }
    let status = event.status.map { "\($0)" } ?? "no response"
    return "A delivery was \(Words.state(event.outcome ?? "ended")) and got \(status)"
  }

  private static func detail(_ event: RequestDocument) -> String {
    let named: [(String, String?)] = [
      ("attempt", event.attempt.map { "\($0)" }), ("cause", event.cause), ("reason", event.reason),
      ("from", event.source), ("client", event.client),
      ("took", event.durationMs.map { Words.span(seconds: $0 / 1000) }),
    ]
    return named.compactMap { name, value in value.map { "\(name) \($0)" } }.joined(separator: ", ")
  }

  private func actions(_ record: RecordDocument, _ danger: String?) async -> View {
    let isUsed = record.stated == true && isUsed(since: record.recordedAt)
    let amends = record.stated == true && ["completed", "released"].contains(record.state)
    let policy = await admin.currentRoutes().first { $0.name == record.route }
    let reason: String? =
      if !frame.mayOperate {
        "You may look at the record and change nothing."
      } else if amends, isUsed {
        "A delivery has used the decision, so that it cannot be undone here: its client has its response. To decide "
          + "otherwise all the same: semel key resolve --amend."
      } else if record.state == "unknown" || amends {
        nil
      } else {
        "Only an unknown outcome can be decided. This record is \(Words.state(record.state))."
      }
    return view([
      "blocked": reason, "resolves": reason == nil, "amends": amends, "danger": danger,
      "forgets": frame.mayOperate && record.state != "absent", "attempt": record.attempt ?? 1,
      "next_attempt": (record.attempt ?? 0) + 1,
      "kept": policy.map { "kept for \(Words.span($0.retention))" } ?? "kept for a day",
      "forget_danger": danger ?? "",
    ])
  }

  /// Whether this node has seen a delivery since the decision.
  private func isUsed(since time: String?) -> Bool {
    let decided = time ?? admin.trail.latest.first { $0.record == id.text && $0.action == "resolve" }?.time
    guard let decided else { return false }
    return admin.journal?.all.contains { entry in
      entry.record == id && entry.event == .ended && Timestamp.text(milliseconds: entry.time) >= decided
    } ?? false
  }
}
