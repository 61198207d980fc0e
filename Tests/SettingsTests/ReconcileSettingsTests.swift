import Idempotency
import Settings
import Testing

struct ReconcileSettingsTests {
  @Test func `all members are read, and have defaults`() throws {
    let short = "on_unknown: reconcile, reconcile: {path: \"/o/{request_id}\"}"
    let policy = try #require(try load(route(short)).routes.first)
    #expect(policy.onUnknown == .reconcile)
    #expect(policy.reconcile == ReconcilePolicy(path: "/o/{request_id}"))
    #expect(policy.reconcile?.applied == [200] && policy.reconcile?.absent == nil)
    let text = route(
      "on_unknown: reconcile, reconcile: {path: \"/o?id={request_id}\", headers: {X-Token: \"${T}\"}, "
        + "applied: [200, 203], absent: {status: [404, 410], header: {X-Lookup: none}, json: {/found: false, "
        + "/error/code: \"7\"}}, status: 201}")
    var expected = ReconcilePolicy(path: "/o?id={request_id}")
    expected.headers = [ReconcilePolicy.Field(name: "X-Token", value: "secret")]
    expected.applied = [200, 203]
    var absence = ReconcilePolicy.Absence()
    absence.statuses = [404, 410]
    absence.headers = [ReconcilePolicy.Field(name: "X-Lookup", value: "none")]
    absence.members = [.init(pointer: "/found", value: "false"), .init(pointer: "/error/code", value: "7")]
    expected.absent = absence
    expected.status = 201
    let settings = try load(text, environment: ["T": "secret"])
    #expect(settings.routes.first?.reconcile == expected)
    #expect(!settings.shownJSON.contains("secret"))
  }

  @Test(arguments: [
    (
      "on_unknown: reconcile",
      "on_unknown: needs a query: reconcile: {path: \"/v1/orders?request_id={request_id}\"}"
    ),
    (
      "reconcile: {path: \"/{request_id}\"}",
      "reconcile: has no effect without on_unknown: reconcile; take it out, or write that"
    ),
    (
      "on_unknown: reconcile, reconcile: {status: 201}",
      "reconcile.path: is missing: write one such as \"/v1/orders?request_id={request_id}\""
    ),
    (
      "on_unknown: reconcile, reconcile: {path: /orders}",
      "reconcile.path: must contain {request_id}, by which the backend finds the request"
    ),
    (
      "on_unknown: reconcile, reconcile: {path: \"orders/{request_id}\"}",
      "reconcile.path: must be a path and query that begins with a slash"
    ),
    // As earlier versions took it: a 404 of a gateway would let the request run again.
    (
      "on_unknown: reconcile, reconcile: {path: \"/{request_id}\", absent: [404]}",
      "reconcile.absent: must name a mark that only the handler of the query makes, since a 404 may come from a "
        + "gateway or a wrong path, and the request would run again: write "
        + "absent: {status: [404], json: {/code: order_not_found}}, or header in place of json"
    ),
    (
      "on_unknown: reconcile, reconcile: {path: \"/{request_id}\", absent: {status: [404]}}",
      "reconcile.absent: must have a member header or json, by which the handler of the query is known: "
        + "absent: {status: [404], json: {/code: order_not_found}}"
    ),
    (
      "on_unknown: reconcile, reconcile: {path: \"/{request_id}\", absent: {json: {code: x}}}",
      "reconcile.absent.json.code: must be a JSON pointer that begins with a slash, such as /code"
    ),
    (
      #"on_unknown: reconcile, reconcile: {path: "/{request_id}", absent: {header: {A: "b\nc"}}}"#,
      "reconcile.absent.header.A: must be a field's whole value in one line, without white space around it: write "
        + #""b c""#
    ),
    (
      "on_unknown: reconcile, reconcile: {path: \"/{request_id}\", applied: [99]}",
      "reconcile.applied[0]: must be a status from 200 to 599"
    ),
  ])
  func `what cannot be meant is refused`(members: String, issue: String) {
    let found = issues(route(members))
    #expect(found.count == 1)
    #expect(found.first?.hasSuffix("routes[0].\(issue)") == true, "\(found)")
  }

  @Test(arguments: [
    ("99", false), ("199", false), ("205", false), ("300", false), ("304", false), ("404", false),
    ("503", false), ("600", false), ("2xx", false), ("200", true), ("204", true), ("206", true),
    ("299", true),
  ])
  func `only a success can be recorded of what was applied`(status: String, isTaken: Bool) {
    let found = issues(
      route("on_unknown: reconcile, reconcile: {path: \"/{request_id}\", status: \(status)}"))
    let issue =
      "2:114: routes[0].reconcile.status: must be the status of a success, from 200 to 299 and not 205, since what "
      + "was applied is recorded and replayed under it; write 200 or 201, or 204 for a response without content"
    #expect(found == (isTaken ? [] : [issue]))
  }
}
