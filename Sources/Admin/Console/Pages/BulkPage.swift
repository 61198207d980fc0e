import HTTPTypes
import Hummingbird
import Idempotency

/// The act on many records: counted first, confirmed by their number, an audit entry each.
struct BulkPage {
  let console: Console
  let frame: ConsoleFrame

  func count(_ request: Request) async throws -> Response {
    let form = try await FormFields(of: request)
    let admin = console.recordAdmin
    guard let route = form["route"] else { throw AdminError(.badRequest, "Choose a route.") }
    _ = try await admin.currentRoutes().route(named: route)
    guard let age = form["older"].flatMap(Words.parsed) else {
      throw AdminError.bad("An age is a number of seconds, or one with s, m, h or d: 15m.")
    }
    let (found, hasMore) = try await admin.unknownRecords(of: route, olderThan: age)
    guard let first = found.first else {
      return frame.page(
        .bulk,
        view([
          "lead": "No record of \(route) has been unknown for longer than \(form["older"] ?? "").",
          "has_plan": false,
        ]))
    }
    let plan = console.plans.keep(.init(route: route, records: found))
    return frame.page(
      .bulk,
      view([
        "lead":
          "\(Words.count(found.count, "record", "records")) of \(route) \(found.count == 1 ? "has" : "have") been "
          + "unknown for longer than \(form["older"] ?? "").",
        "has_plan": true, "plan": plan, "count": found.count, "more": hasMore, "sample": first.id.text,
      ]))
  }

  func confirm(_ request: Request, _ context: AdminContext) async throws -> Response {
    let form = try await FormFields(of: request)
    guard let name = form["plan"], let seen = console.plans.plan(named: name) else {
      throw AdminError(.conflict, "This count is too old, or was used already: count them again.")
    }
    guard let reason = form["reason"] else {
      throw AdminError.bad("Give a reason, for the audit log.")
    }
    guard form["number"] == "\(seen.records.count)" else {
      throw AdminError.bad("The number typed is not \(seen.records.count): nothing was changed.")
    }
    guard let plan = console.plans.take(name) else {
      throw AdminError(.conflict, "This count was used already: count them again.")
    }
    var (done, skipped) = (0, 0)
    for (id, attempt) in plan.records {
      let document = ResolutionDocument(outcome: .notApplied, attempt: attempt, reason: reason)
      do throws(AdminError) {
        _ = try await console.recordAdmin.resolve(id, document, by: context.peer)
        done += 1
      } catch {
        // The record is not that of the count any more. Anything else would meet the others, too.
        guard error.status == .conflict || error.status == .notFound else {
          throw AdminError(
            error.status, "After \(Words.count(done, "record", "records")): \(error.detail)")
        }
        skipped += 1
      }
    }
    let rest =
      skipped == 0 ? "" : " \(Words.number(skipped)) were left, since they have changed since the count."
    return frame.page(
      .bulk,
      view([
        "lead": "\(Words.count(done, "record was", "records were")) resolved as not applied.\(rest)",
        "has_plan": false,
      ]))
  }
}

/// The page of the operators' acts: who, when, and for which reason.
struct AuditPage {
  let console: Console

  var content: View {
    let entries = console.recordAdmin.trail.latest.map { entry in
      let state = entry.refused.map { "refused: \($0)" } ?? entry.failed.map { "failed: \($0)" }
      let details = entry.details.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
      return view([
        "time": Words.date(entry.time), "action": entry.action, "record": entry.record,
        "short_id": entry.record.map(Words.short),
        "from": entry.from, "reason_text": entry.reason ?? "–", "warning": entry.warning,
        "details": ([state].compactMap(\.self) + details).joined(separator: ", "),
      ])
    }
    return view(["entries": entries, "has_entries": !entries.isEmpty])
  }
}

/// The configuration in use, without its secrets, and the latest reload.
struct ConfigurationPage {
  let surroundings: ConsoleSurroundings

  func content() async -> View {
    let status = await surroundings.configuration()
    return view([
      "refusal": status?.refusal != nil, "refused_at": status?.refusal?.at,
      "reasons": status?.refusal?.reasons,
      "facts": [
        fact("Digest", status?.digest ?? "none: there is no file", code: true),
        fact("Loaded", status?.loadedAt),
        fact("Refused digest", status?.refusal?.digest, code: true),
      ].compactMap(\.self),
      "document": await surroundings.settings(),
    ])
  }
}
