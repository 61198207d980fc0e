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
