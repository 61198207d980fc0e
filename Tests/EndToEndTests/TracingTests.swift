import Foundation
import Synchronization
import TestSupport
import Testing

/// Spans as a collector gets them, and what the backend is told of the trace.
struct TracingTests {
  struct Document: Decodable {
    struct Resource: Decodable { let scopeSpans: [Scope] }
    struct Scope: Decodable { let spans: [Span] }
    let resourceSpans: [Resource]
  }

  struct Span: Decodable {
    struct Attribute: Decodable {
      struct Value: Decodable {
        let stringValue: String?
        let intValue: String?
      }
      let key: String
      let value: Value
    }
    struct Link: Decodable { let traceId: String, spanId: String }
    let traceId: String, spanId: String, name: String, startTimeUnixNano: String, endTimeUnixNano: String
    let parentSpanId: String?
    let kind: Int
    let attributes: [Attribute]
    let links: [Link]?

    subscript(key: String) -> String? {
      attributes.first { $0.key == key }.flatMap { $0.value.stringValue ?? $0.value.intValue }
    }
  }

  private static let trace = "0af7651916cd43dd8448eb211c80319c"
  private static let traceparent = "00-\(trace)-b7ad6b7169203331-01"

  /// Runs a test beside a collector; both scripted backends.
  private func run(_ test: @escaping @Sendable (Rig, OrdersBackend) async throws -> Void) async throws {
    let collector = OrdersBackend()
    try await collector.start()
    collector.on("/v1/traces") { _ in Reply(200, body: "{}") }
    let top = ["tracing": "{otlp: 'http://127.0.0.1:\(collector.port)'}"]
    try await Rig.run(Configuration(top: top)) { rig in try await test(rig, collector) }
    try await collector.stop()
  }

  /// Waits until so many spans of these names have come.
  private func spans(_ collector: OrdersBackend, _ count: Int) async throws -> [Span] {
    try await collector.log.until("\(count) spans", within: .seconds(30)) { log in
      let spans = log.requests.compactMap {
        try? JSONDecoder().decode(Document.self, from: Data($0.text.utf8))
      }.flatMap { $0.resourceSpans.flatMap { $0.scopeSpans.flatMap(\.spans) } }
      return spans.count >= count ? spans : nil
    }
  }

  @Test func `a request is a span with its claim, its forwarding and its recording under it`() async throws {
    try await run { rig, collector in
      _ = try await rig.order("a", [("traceparent", Self.traceparent), ("tracestate", "x=1")])
      let spans = try await spans(collector, 4)
      #expect(Set(spans.map(\.traceId)) == [Self.trace])
      let request = try #require(spans.first { $0.kind == 2 })
      #expect(request.parentSpanId == "b7ad6b7169203331")
      #expect(request.name == "POST orders")
      #expect(request["semel.outcome"] == "executed")
      #expect(request["http.response.status_code"] == "201")
      let parts = spans.filter { $0.parentSpanId == request.spanId }
      #expect(Set(parts.map(\.name)) == ["claim", "forward", "record"])
      #expect(Set(spans.map(\.spanId)).count == 4)
      for part in parts {
        #expect(part.startTimeUnixNano >= request.startTimeUnixNano)
        #expect(part.endTimeUnixNano <= request.endTimeUnixNano)
      }
      let forward = try #require(parts.first { $0.name == "forward" })
      let sent = rig.backend.requests[0]
      #expect(sent["traceparent"] == "00-\(Self.trace)-\(forward.spanId)-01")
      #expect(sent["tracestate"] == "x=1")
    }
  }

  @Test func `a batch has the spans of a request, and a repeated one those of all its attempts`() async throws
  {
    let attempts = Mutex(0)
    let retried =
      "{name: retried, match: {methods: [POST], path: /retried}, caller: {shared: true}, "
      + "retries: {max: 2, max_backoff: 400ms}}"
    let bulk =
      "{name: bulk, match: {methods: [POST], path: /bulk}, caller: {shared: true}, "
      + "batch: {items: /orders, key: /id, results: /results}}"
    let collector = OrdersBackend()
    try await collector.start()
    collector.on("/v1/traces") { _ in Reply(200, body: "{}") }
    let top = ["tracing": "{otlp: 'http://127.0.0.1:\(collector.port)'}"]
    try await Rig.run(Configuration(top: top.merging(["workers": "1"]) { $1 }, firstRoutes: [retried, bulk]))
    { rig in
      rig.backend.on("/bulk") { _ in Reply(201, body: #"{"results":[{"id":"a"}]}"#) }
      rig.backend.on("/retried") { _ in
        let attempt = attempts.withLock { count in
          count += 1
          return count
        }
        return attempt < 3 ? Reply(503, body: "") : Reply(201, body: "{}")
      }
      let many = try await rig.order(nil, body: #"{"orders":[{"id":"a"}]}"#, path: "/bulk")
      #expect(many.status == 201, "\(many.text)")
      #expect(try await rig.order("k", path: "/retried").status == 201)
      let spans = try await spans(collector, 8)
      for (request, path) in zip(spans.filter { $0.kind == 2 }, ["/bulk", "/retried"]) {
        let parts = spans.filter { $0.parentSpanId == request.spanId }
        #expect(Set(parts.map(\.name)) == ["claim", "forward", "record"], "\(path): \(parts.map(\.name))")
        for part in parts {
          #expect(part.startTimeUnixNano >= request.startTimeUnixNano, "\(path): \(part.name)")
          #expect(part.endTimeUnixNano <= request.endTimeUnixNano, "\(path): \(part.name)")
        }
        let forward = try #require(parts.first { $0.name == "forward" })
        let sent = try #require(rig.backend.requests.last { $0.path == path })
        #expect(sent["traceparent"]?.contains(forward.spanId) == true)
      }
    }
    try await collector.stop()
  }

  @Test func `a replay links to the trace in which the request first ran`() async throws {
    try await run { rig, collector in
      let first = try await rig.order("a")
      let again = try await rig.order("a", [("traceparent", Self.traceparent)])
      expectReplayed(again, of: first)
      #expect(again["Idempotency-Trace"] == nil)
      let requests = try await spans(collector, 5).filter { $0.kind == 2 }
      let executed = try #require(requests.first { $0["semel.outcome"] == "executed" })
      let replayed = try #require(requests.first { $0["semel.outcome"] == "replayed" })
      #expect(replayed.traceId == Self.trace)
      #expect(replayed.links?.map(\.traceId) == [executed.traceId])
      #expect(replayed.links?.map(\.spanId) == [executed.spanId])
    }
  }

  @Test func `a trace that its client does not keep goes on unchanged`() async throws {
    try await run { rig, collector in
      let unsampled = "00-\(Self.trace)-b7ad6b7169203331-00"
      _ = try await rig.order("a", [("traceparent", unsampled)])
      _ = try await rig.order("b")
      #expect(rig.backend.requests[0]["traceparent"] == unsampled)
      #expect(!(try await spans(collector, 4)).contains { $0.traceId == Self.trace })
      try await rig.semel.process.line(containing: #""trace_id":"\#(Self.trace)""#)
    }
  }

  @Test func `without a collector the client's trace passes through and stands in the log`() async throws {
    try await Rig.run { rig in
      _ = try await rig.order("a", [("traceparent", Self.traceparent)])
      #expect(rig.backend.requests[0]["traceparent"] == Self.traceparent)
      try await rig.semel.process.line(containing: #""trace_id":"\#(Self.trace)""#)
    }
  }

  @Test func `a missing collector delays nobody`() async throws {
    let top = ["tracing": "{otlp: 'http://127.0.0.1:\(FreePort.find())'}"]
    try await Rig.run(Configuration(top: top)) { rig in
      for index in 0..<20 { expectExecuted(try await rig.order("\(index)")) }
      try await rig.semel.counter("semel_spans_dropped_total", becomes: 80)
      let warning = try await rig.semel.process.line(containing: "takes no spans")
      #expect(warning.contains("refused") || warning.contains("connect"), "\(warning)")
    }
  }
}
