import TestSupport
import Testing

/// The profiles, as the SDKs see them for which they are made: nobody here wrote these, and they retry by themselves.
struct ProfileClientTests {
  /// Longer than a client waits, and short enough for its retries.
  private static let slow = Duration.milliseconds(6500)

  /// The output of a script of `Clients`.
  struct Report: Decodable {
    /// The numbers of the requests that the backend ran for it, and `true` where the response was a replay.
    let made: [Made]
    let failures: [[Part]]
  }

  struct Made: Decodable, Equatable {
    let number: Int
    let replayed: String?

    init(_ number: Int, _ replayed: String?) { (self.number, self.replayed) = (number, replayed) }

    init(from decoder: any Decoder) throws {
      var parts = try decoder.unkeyedContainer()
      number = try parts.decode(Int.self)
      replayed = try parts.decodeIfPresent(String.self)
    }
  }

  /// A text, a number or nothing.
  enum Part: Decodable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case text(String)
    case number(Int)
    case none

    init(stringLiteral text: String) { self = .text(text) }
    init(integerLiteral number: Int) { self = .number(number) }

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if value.decodeNil() {
        self = .none
      } else if let number = try? value.decode(Int.self) {
        self = .number(number)
      } else {
        self = .text(try value.decode(String.self))
      }
    }
  }

  private static func run(_ script: String, _ rig: Rig, timeout: String? = "4") async throws -> Report {
    try await Python.run(script, ["http://127.0.0.1:\(rig.semel.ports.proxy)"] + (timeout.map { [$0] } ?? []))
  }

  @Test(arguments: StoreKind.allCases)
  func `Stripe's SDK charges once and raises Stripe's errors`(store: StoreKind) async throws {
    let route = ["profile": "stripe", "caller": "{parts: ['header:Authorization', 'header:Stripe-Account']}"]
    try await Rig.run(Configuration(store: store, route: route), within: .seconds(120)) { rig in
      rig.backend.on("/v1/charges") { request in
        let body = #"{"id":"ch_1","object":"charge","number":\#(request.number)}"#
        return Reply(200, body: body, delay: request.number == 1 ? Self.slow : .zero)
      }
      let report = try await Self.run("profile_stripe", rig)
      #expect(report.made == [Made(1, "true"), Made(2, nil), Made(2, "true")])
      #expect(
        report.failures == [
          ["IdempotencyError", 400, "payload_mismatch"], ["AuthenticationError", 401, "caller_unknown"],
        ])
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `Square's SDK pays once and finds Square's errors`(store: StoreKind) async throws {
    let route = ["profile": "square", "duplicates": "reject", "match": "{methods: [POST], path: '/v2/**'}"]
    try await Rig.run(Configuration(store: store, route: route), within: .seconds(120)) { rig in
      let refused = Gate()
      rig.backend.on("/v2/payments") { request in
        guard request.number != 2 else { return Reply(503, body: #"{"errors":[]}"#) }
        let body = #"{"payment":{"id":"\#(request.number)","status":"COMPLETED"}}"#
        return Reply(200, body: body, gate: request.number == 1 ? refused : nil)
      }
      async let running = Self.run("profile_square", rig, timeout: nil)
      try await rig.semel.process.line(containing: "in_flight", within: .seconds(90))
      refused.open()
      let report = try await running
      #expect(report.made == [Made(1, "true"), Made(1, nil), Made(3, nil)])
      #expect(
        report.failures == [
          ["INVALID_REQUEST_ERROR", 400, "IDEMPOTENCY_KEY_REUSED", "idempotency_key"],
          ["INVALID_REQUEST_ERROR", 400, "MISSING_REQUIRED_PARAMETER", "idempotency_key"],
        ])
      #expect(rig.backend.requests.map(\.attempt) == ["1", "1", "2"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `PayPal's SDK orders once and raises PayPal's errors`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store,
      route: ["profile": "paypal", "match": "{methods: [POST], path: '/**'}"])
    try await Rig.run(configuration, within: .seconds(120)) { rig in
      rig.backend.on("/v1/oauth2/token") { _ in
        Reply(200, body: #"{"access_token":"semel","token_type":"Bearer","expires_in":3600}"#)
      }
      rig.backend.on("/v2/checkout/orders") { request in
        Reply(body: #"{"id":"\#(request.number)"}"#, delay: request.number == 2 ? Self.slow : .zero)
      }
      let report = try await Self.run("profile_paypal", rig)
      #expect(report.made == [Made(2, "true"), Made(2, "true"), Made(3, nil), Made(4, nil)])
      #expect(report.failures == [["INVALID_REQUEST", 400, "DUPLICATE_REQUEST_ID", "header"]])
      #expect(rig.backend.requests.map { $0["PayPal-Request-Id"] } == [nil, "k", nil, nil])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `Modern Treasury's SDK creates once and obeys refusals`(store: StoreKind) async throws {
    let route = ["profile": "ietf", "match": "{path: '/api/**'}"]
    try await Rig.run(Configuration(store: store, route: route), within: .seconds(120)) { rig in
      rig.backend.on("/api/counterparties") { request in
        guard request.number != 2 else { return Reply(503) }
        let body = #"{"id":"\#(request.number)","object":"counterparty"}"#
        return Reply(body: body, delay: request.number == 1 ? Self.slow : .zero)
      }
      let report = try await Self.run("profile_ietf", rig)
      #expect(report.made == [Made(1, "true"), Made(3, nil), Made(3, "true")])
      #expect(
        report.failures == [
          ["UnprocessableEntityError", 422, "payload_mismatch"], ["BadRequestError", 400, "key_invalid"],
        ])
      #expect(rig.backend.requests.count == 3)
    }
  }
}
