import Foundation
import Idempotency
import NIOCore
import Testing
import Wire

/// The policy that clients may read.
struct PolicyDocumentTests {
  private struct Document: Decodable {
    struct Route: Decodable {
      struct Outcomes: Decodable { let retry: [Status] }
      let name: String
      let host: String?
      let retention_seconds: Double
      let wait_timeout_seconds: Double
      let endpoint: String
      let endpoint_host: String
      let echo_key: Bool
      let record: String
      let outcomes: Outcomes
    }
    struct Problem: Decodable {
      let code: String
      let statuses: [Int]
      let retryable: Bool?
    }
    enum Status: Decodable, Equatable {
      case number(Int), text(String)
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int.self) {
          self = .number(number)
        } else {
          self = .text(try container.decode(String.self))
        }
      }
    }
    let routes: [Route]
    let problems: [Problem]
  }

  private static let upstream = UpstreamSettings(name: "secret-backend", address: .tcp(host: "h", port: 1))

  private static func policy(_ name: String, host: String? = nil) -> RoutePolicy {
    var policy = RoutePolicy(
      name: name,
      match: RouteMatch(
        methods: ["POST"], host: host, headers: [RequiredHeader(name: "x-gateway", value: "hidden-value")]),
      upstream: upstream)
    policy.caller = CallerPolicy(parts: [.header("x-account")])
    return policy
  }

  private func response(
    _ routes: [RoutePolicy], host: String = "api.example", _ fields: (String, String)...
  ) -> OwnResponse {
    var request = Request()
    request.method = "GET"
    request.fields = fields
    return PolicyDocument(routes).response(to: request.head, host: ByteBuffer(string: host))
  }

  @Test(arguments: [
    ("text/html", true), ("application/xml, Text/HTML;q=0.9", true), ("*/*", false),
    ("application/json", false),
    ("text/htmlx", false), ("text/*", false),
  ])
  func `a page for people is shown to whoever takes HTML`(accept: String, isLed: Bool) {
    var request = Request()
    request.method = "GET"
    request.fields = [("Accept", accept)]
    let policy = PolicyDocument([Self.policy("orders")], page: "https://docs.example.com/codes")
    let response = policy.response(to: request.head, host: ByteBuffer())
    #expect(response.status == (isLed ? 303 : 200))
    #expect(response.fields.contains { "\($0.name)" == "Vary" && $0.value == "Accept" })
    #expect(response.fields.contains { $0.value == "https://docs.example.com/codes" } == isLed)
    // Without a page everybody gets the document.
    #expect(self.response([Self.policy("orders")], ("Accept", accept)).status == 200)
  }

  private func document(_ routes: [RoutePolicy], host: String = "api.example") throws -> Document {
    let body = String(buffer: response(routes, host: host).body)
    return try JSONDecoder().decode(Document.self, from: Data(body.utf8))
  }

  @Test func `it shows protected routes, and nothing of callers, backends and values`() throws {
    var open = Self.policy("open")
    open.idempotency = .off
    var first = Self.policy("orders")
    first.key.from = [.header("idempotency-key"), .composite([.query("a\"b"), .query("c")]), .payload]
    first.retention = .seconds(90)
    first.waitTimeout = 1250
    first.outcomes = OutcomeTable(retry: [.hundred(5)], unknown: [.status(500)])
    let document = try document([first, open, Self.policy("payments")])
    #expect(document.routes.map(\.name) == ["orders", "payments"])
    #expect(document.routes[0].retention_seconds == 90)
    #expect(document.routes[0].wait_timeout_seconds == 1.25)
    #expect(document.routes[0].outcomes.retry.contains(.number(599)))
    #expect(!document.routes[0].outcomes.retry.contains(.number(500)))
    #expect(document.routes[1].outcomes.retry.prefix(3) == [.number(307), .number(308), .number(401)])
    let text = String(buffer: response([first]).body)
    #expect(text.contains(#""from":["header:idempotency-key",["query:a\"b","query:c"],"payload"]"#))
    for hidden in ["secret-backend", "hidden-value", "x-account"] { #expect(!text.contains(hidden)) }
  }

  @Test func `it shows the repeated key, the recorded part and the host's part in the endpoint`() throws {
    var secret = Self.policy("secrets")
    secret.echoesKey = true
    secret.record = .status
    secret.endpoint = .route
    secret.endpointHost = .any
    let routes = try document([Self.policy("orders"), secret]).routes
    #expect(routes.map(\.echo_key) == [false, true])
    #expect(routes.map(\.record) == ["response", "status"])
    #expect(routes.map(\.endpoint) == ["path", "route"])
    #expect(routes.map(\.endpoint_host) == ["own", "any"])
  }

  @Test func `a whole hundred is one word`() throws {
    var policy = Self.policy("orders")
    policy.outcomes = OutcomeTable(retry: [.hundred(5)])
    #expect(try document([policy]).routes[0].outcomes.retry.last == .text("5xx"))
  }

  @Test func `clients of one host do not see the routes of another`() throws {
    let routes = [
      Self.policy("one", host: "one.example"), Self.policy("two", host: "*.two.example"), Self.policy("any"),
    ]
    #expect(try document(routes, host: "one.example").routes.map(\.name) == ["one", "any"])
    #expect(try document(routes, host: "a.two.example").routes.map(\.name) == ["two", "any"])
    #expect(try document(routes, host: "").routes.map(\.name) == ["any"])
  }

  @Test func `a client that has it gets no copy`() throws {
    let first = response([Self.policy("orders")])
    #expect(first.status == 200)
    let tag = try #require(first.fields.first { "\($0.name)" == "ETag" }?.value)
    let fields = first.fields.map { "\($0.name): \($0.value)" }
    #expect(fields == ["Cache-Control: max-age=300", "ETag: \(tag)", "Content-Type: application/json"])
    for names in [tag, "W/\(tag)", "\"a\", \(tag)", "*"] {
      let again = response([Self.policy("orders")], ("If-None-Match", names))
      #expect(again.status == 304)
      #expect(again.body.readableBytes == 0)
    }
    #expect(response([Self.policy("payments")], ("If-None-Match", tag)).status == 200)
    #expect(response([Self.policy("orders")], ("If-None-Match", "\"a\"")).status == 200)
  }

  @Test func `what it says of the problem codes is true of every problem`() throws {
    let known = Dictionary(grouping: try document([]).problems, by: \.code)
    for problem in ProblemTests.all {
      let entry = try #require(known[problem.code.rawValue]?.first)
      #expect(entry.statuses.contains(problem.status), "\(problem.code)")
      if let retryable = entry.retryable { #expect(retryable == problem.isRetryable, "\(problem.code)") }
    }
  }

  @Test func `only GET and HEAD at the very path are Semel's own`() {
    func isReserved(_ method: String, _ path: String) -> Bool {
      let head = try? MessageHead(method: method, target: path)
      return head.flatMap { ReservedPath($0, path: ByteBuffer(string: path)) } != nil
    }
    for path in ["/.well-known/idempotency", "/.well-known/idempotency/outcome"] {
      #expect(isReserved("GET", path) && isReserved("HEAD", path))
      #expect(!isReserved("POST", path) && !isReserved("OPTIONS", path))
      #expect(!isReserved("GET", path + "/") && !isReserved("GET", path.uppercased()))
    }
  }
}
