import Foundation
import TestSupport
import Testing

/// A page in a real browser, whose requests go to another origin.
@Suite(.enabled(if: Chromium.isInstalled, "there is no chromium: run deploy/install test"))
struct BrowserTests {
  /// Longer than a browser takes to start on a machine that is busy with other tests.
  private static let timeout = Duration.seconds(240)

  /// The page's account of one response.
  struct Seen: Decodable, Sendable {
    let status: Int
    let idempotency: String?
    let replayed: String?
    let shouldRetry: String?
    let text: String
  }

  /// The page's account of its work; `error` if a request failed.
  struct Report: Decodable, Sendable {
    let error: String?
    let seen: [Seen]
  }

  /// Sends an order, repeats it, changes it under the same key, looks its outcome up, and reports what it could read.
  private static func page(_ proxy: Int) -> String {
    """
    <!doctype html><title>shop</title><script>
    const api = 'http://127.0.0.1:\(proxy)', seen = []
    const fields = {'Authorization': 'Bearer alice', 'Idempotency-Key': 'order-1'}
    async function send(path, request) {
      const response = await fetch(api + path, request), field = name => response.headers.get(name)
      seen.push({
        status: response.status, idempotency: field('Idempotency-Status'), replayed: field('Idempotent-Replayed'),
        shouldRetry: field('X-Should-Retry'), text: await response.text()})
    }
    const order = amount => send('/v1/orders', {
      method: 'POST', headers: {...fields, 'Content-Type': 'application/json'}, body: JSON.stringify({amount})})
    async function work() {
      await order(1)
      await order(1)
      await order(2)
      await send('/.well-known/idempotency/outcome?method=POST&path=/v1/orders', {headers: fields})
    }
    const report = error => fetch('/report', {method: 'POST', body: JSON.stringify({error, seen})})
    work().then(() => report(null), error => report(String(error)))
    </script>
    """
  }

  /// Opens the page at an origin of its own, and awaits its report.
  private static func browse(_ rig: Rig, pages: OrdersBackend) async throws -> Report {
    pages.on("/shop") { _ in
      Reply(200, [("Content-Type", "text/html")], body: page(rig.semel.ports.proxy))
    }
    let chromium = try Chromium(opening: "http://127.0.0.1:\(pages.port)/shop")
    do {
      let report = try await pages.log.until("the page's report", within: timeout) { log in
        log.requests.first { $0.path == "/report" }
      }
      try await chromium.process.kill()
      return try JSONDecoder().decode(Report.self, from: Data(report.body))
    } catch {
      Issue.record("chromium wrote:\n\(chromium.process.errors.suffix(4000))")
      throw error
    }
  }

  /// A backend that lets pages of `origin` place orders.
  private static func serve(_ rig: Rig, for origin: String) {
    let allowed = [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")]
    rig.backend.on("/v1/orders") { request in
      guard request.method == "OPTIONS" else {
        return Reply(201, allowed + [("Content-Type", "application/json")], body: #"{"order":1}"#)
      }
      return Reply(
        200, allowed + [("Access-Control-Allow-Headers", "authorization, content-type")], body: "")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a page orders once, and reads outcome and refusal`(store: StoreKind) async throws {
    let pages = OrdersBackend()
    try await pages.start()
    let origin = "http://127.0.0.1:\(pages.port)"
    let configuration = Configuration(store: store, route: ["cors": "{origins: ['\(origin)']}"])
    try await Rig.run(configuration, within: Self.timeout + .seconds(30), slots: 3) { rig in
      Self.serve(rig, for: origin)
      let report = try await Self.browse(rig, pages: pages)
      #expect(report.error == nil)
      try #require(report.seen.count == 4, "\(report)")
      #expect(report.seen.map(\.status) == [201, 201, 409, 200])
      #expect(report.seen.map(\.idempotency) == ["executed", "replayed", nil, nil])
      #expect(report.seen.map(\.replayed) == [nil, "true", nil, nil])
      #expect(report.seen[0].text == #"{"order":1}"# && report.seen[1].text == #"{"order":1}"#)
      #expect(report.seen[2].text.contains(#""code":"payload_mismatch""#))
      #expect(report.seen[2].shouldRetry == "false")
      #expect(report.seen[3].text.contains(#""state":"completed""#))
      #expect(rig.backend.requests.count { $0.method == "POST" } == 1)
    }
    try await pages.stop()
  }

  /// The script of the clients' page, as it is printed.
  private static func printedScript() throws -> String {
    let page = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../deploy/clients.md").standardizedFileURL
    let text = try String(contentsOf: page, encoding: .utf8)
    let parts = text.split(separator: "```js\n", maxSplits: 1)
    return String(try #require(parts.last?.split(separator: "```\n", maxSplits: 1).first))
  }

  /// Submits one intent as soon as all tabs are there, and reports its key and the final response.
  private static func submitting(_ proxy: Int) -> String {
    """
    <!doctype html><title>shop</title><script type="module">
    import {submit} from '/order.mjs'
    const work = async () => {
      await fetch('/ready')
      if (!navigator.locks) throw 'there are no locks'
      const final = await submit('http://127.0.0.1:\(proxy)/v1/orders', 'cart-7', {amount: 1}, async () => 'alice')
      return {key: JSON.parse(localStorage['intent:cart-7']).key, status: final.status ?? 0, text: final.text ?? ''}
    }
    const report = body => fetch('/report', {method: 'POST', body: JSON.stringify(body)})
    work().then(report, error => report({key: String(error), status: 0, text: ''}))
    </script>
    """
  }

  private struct Submitted: Decodable {
    let key: String
    let status: Int
    let text: String
  }

  @Test func `of two tabs that submit one intent at once, one makes its key, and one order is placed`()
    async throws
  {
    let pages = OrdersBackend()
    try await pages.start()
    let origin = "http://127.0.0.1:\(pages.port)"
    let configuration = Configuration(route: ["cors": "{origins: ['\(origin)']}"])
    try await Rig.run(configuration, within: Self.timeout + .seconds(30), slots: 3) { rig in
      Self.serve(rig, for: origin)
      let (script, together) = (try Self.printedScript(), Gate())
      pages.on("/shop") { _ in
        Reply(200, [("Content-Type", "text/html")], body: Self.submitting(rig.semel.ports.proxy))
      }
      pages.on("/order.mjs") { _ in Reply(200, [("Content-Type", "text/javascript")], body: script) }
      pages.on("/ready") { _ in Reply(200, gate: together) }
      let chromium = try Chromium(opening: [origin + "/shop?1", origin + "/shop?2"])
      _ = try await pages.log.until("both tabs", within: Self.timeout) { log in
        log.requests.count { $0.path == "/ready" } == 2 ? true : nil
      }
      together.open()
      let reports = try await pages.log.until("both reports", within: Self.timeout) { log in
        let found = log.requests.filter { $0.path == "/report" }
        return found.count == 2 ? found.map(\.body) : nil
      }
      try await chromium.process.kill()
      let submitted = try reports.map { try JSONDecoder().decode(Submitted.self, from: Data($0)) }
      #expect(submitted.allSatisfy { $0.status == 201 && $0.text == #"{"order":1}"# }, "\(submitted)")
      #expect(Set(submitted.map(\.key)).count == 1, "\(submitted)")
      #expect(rig.backend.requests.count { $0.method == "POST" } == 1)
    }
    try await pages.stop()
  }

  @Test func `a page that the backend does not allow learns nothing`() async throws {
    let pages = OrdersBackend()
    try await pages.start()
    try await Rig.run(
      Configuration(route: ["cors": "true"]), within: Self.timeout + .seconds(30), slots: 3
    ) { rig in
      Self.serve(rig, for: "https://shop.example")
      let report = try await Self.browse(rig, pages: pages)
      #expect(report.error?.contains("TypeError") == true)
      #expect(report.seen.isEmpty)
      #expect(rig.backend.requests.allSatisfy { $0.method == "OPTIONS" })
    }
    try await pages.stop()
  }
}
