import Hummingbird
import Idempotency

/// The list of open records, and the search for any record.
struct RecordsPage {
  private static let states = [
    ("", "any that is open"), ("unknown", "unknown"), ("in_flight", "in flight"),
    ("unreadable", "unreadable"),
  ]
  /// The time for which a page walks on where its filter finds little.
  private static let span = Duration.seconds(1)

  let console: Console
  let frame: ConsoleFrame

  func list(_ request: Request) async throws -> Response {
    let query = try request.parameters("state", "route", "older", "cursor")
    let (state, route) = (query["state"] ?? "", query["route"] ?? "")
    let older = query["older"] ?? ""
    try require(Self.states.contains(where: { $0.0 == state }), "There is no such state.")
    guard let age = older.isEmpty ? 0 : Words.parsed(older) else {
      throw AdminError.bad("An age is a number of seconds, or one with s, m, h or d: 15m.")
    }
    let list = try await console.recordAdmin.list(
      after: query["cursor"].flatMap { $0.isEmpty ? nil : $0 }, span: Self.span
    ) { record in
      (state.isEmpty || record.state == state) && (route.isEmpty || record.route == route)
        && (age == 0 || (record.unknownForSeconds ?? record.ageSeconds ?? 0) >= age.inSeconds)
    }
    let next = list.next.map {
      "state=\(state)&route=\(route.queryValue)&older=\(older.queryValue)&cursor=\($0.queryValue)"
    }
    let names = await console.recordAdmin.currentRoutes().filter(\.isProtected).map(\.name)
    return frame.page(
      .records,
      view([
        "states": Self.states.map { view(["value": $0.0, "name": $0.1, "selected": $0.0 == state]) },
        "route_names": names.map { view(["name": $0, "selected": $0 == route]) }, "older": older,
        "rows": list.records.map(\.row), "has_rows": !list.records.isEmpty,
        "caption": Words.count(list.records.count, "open record", "open records")
          + (next == nil ? "" : ", and perhaps more"),
        "empty": next == nil ? "No such record is open" : "None so far", "next": next,
        "bulk": frame.mayOperate && (state.isEmpty || state == "unknown"),
        "max": Words.number(BulkPlans.maxRecords),
        "text": "", "by_caller": false,
      ]))
  }

  /// Searches for what a form names, which enters no URL and no log.
  func search(_ request: Request) async throws -> Response {
    let form = try await FormFields(of: request)
    guard let text = form["text"] else { throw AdminError(.badRequest, "There is nothing to search for.") }
    let byCaller = form["kind"] == "caller"
    if !byCaller, let id = RecordID(text: text) { return frame.redirect(to: "/records/\(id.text)") }
    let searches = try await self.searches(for: text, byCaller: byCaller, cursor: form["cursor"])
    var (records, next, events): ([RecordDocument], String?, Int) = ([], nil, 0)
    for search in searches {
      let found = try await console.recordAdmin.search(search)
      records += found.records.filter { record in !records.contains { $0.id == record.id } }
      next = next ?? found.next
      events = found.searchedEvents
    }
    if records.count == 1, next == nil, let only = records.first {
      return frame.redirect(to: "/records/\(only.id)")
    }
    return frame.page(
      .matches,
      view([
        "text": text, "kind": form["kind"] ?? "", "by_caller": byCaller, "rows": records.map(\.row),
        "has_rows": !records.isEmpty, "next": next,
        "caption":
          "\(Words.count(records.count, "record", "records")), the store and \(Words.number(events)) events of this node searched",
        "empty": next == nil ? "Nothing was found" : "Nothing was found so far",
      ]))
  }

  /// The possible meanings of a text: the digits of a digest, or else a key; or a caller.
  private func searches(for text: String, byCaller: Bool, cursor: String?) async throws -> [RecordSearch] {
    if byCaller {
      let digests = await console.recordAdmin.callerDigests(of: text)
      try require(
        !digests.isEmpty,
        "No route knows callers by one part that can have this value: use `semel key show --caller`.")
      return digests.map { RecordSearch(callerDigest: $0, cursor: cursor) }
    }
    if text.utf8.count == 8, text.allSatisfy({ $0.isHexDigit && $0.isASCII }) {
      return [
        RecordSearch(keyDigest: text, cursor: cursor), RecordSearch(callerDigest: text, cursor: cursor),
      ]
    }
    return [RecordSearch(key: KeyTexts(texts: [text]), cursor: cursor)]
  }
}
