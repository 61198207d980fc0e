import Idempotency
import NIOCore
import Testing
import Wire

/// Questions for the outcome of a request that is not sent again.
struct OutcomeInquiryTests {
  private static func table(_ change: (inout RoutePolicy) -> Void = { _ in }) -> RouteTable {
    let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))
    var policy = RoutePolicy(name: "orders", match: RouteMatch(methods: ["POST"]), upstream: upstream)
    policy.caller = CallerPolicy(parts: [.header("x-account")])
    policy.waitTimeout = .seconds(10)
    change(&policy)
    return RouteTable([policy])
  }

  private func inquiry(
    _ query: String, _ fields: [(String, String)] = [("X-Account", "alice"), ("Idempotency-Key", "k")],
    routes: RouteTable = table(), host: String = "api.example"
  ) throws(Problem) -> OutcomeInquiry {
    var request = Request()
    request.method = "GET"
    request.fields = fields
    return try OutcomeInquiry(
      head: request.head, query: ByteBuffer(string: query), host: try? RequestHost(ByteBuffer(string: host)),
      peer: CallerPeer(address: nil), routes: routes, under: nil)
  }

  /// The id of the record that the request itself has.
  private func id(
    _ path: String, key: String = "k", caller: String = "alice", policy: KeyPolicy = KeyPolicy()
  ) throws -> RecordID {
    RecordID.make(
      caller: try CallerPolicy(parts: [.header("x-account")]).caller(values: ["header:x-account": caller]),
      upstream: "b", host: try RequestHost(ByteBuffer(string: "api.example")),
      method: ByteBuffer(string: "POST"), place: .path(ByteBuffer(string: path)),
      key: try policy.key(text: key))
  }

  private static let order = "method=POST&path=/v1/orders"

  @Test func `it names the record that the request has`() throws {
    let order = try id("/v1/orders")
    #expect(try inquiry(Self.order).id == order)
    #expect(try inquiry("path=%2Fv1%2Forders&method=POST").id == order)
    #expect(try inquiry("method=POST&path=/v1/./orders%3Fdry=1").id == order)
    #expect(try inquiry(Self.order + "&key=k", [("X-Account", "alice")]).id == order)
    #expect(try inquiry(Self.order + "&key=k").id == order)
    #expect(try inquiry(Self.order + "&key=j", [("X-Account", "alice")]).id == id("/v1/orders", key: "j"))
    #expect(try inquiry("method=POST&path=/v1/orders/").id != order)
    #expect(try inquiry(Self.order, host: "API.example:8443").id == order)
    #expect(try inquiry(Self.order, host: "other.example").id != order)
    #expect(
      try inquiry(Self.order, [("X-Account", "bob"), ("Idempotency-Key", "k")]).id
        == id("/v1/orders", caller: "bob"))
  }

  @Test func `a key beside the body counts where the body may have one`() throws {
    var policy = KeyPolicy()
    policy.from = [.json("/id"), .query("id"), .header("x-key")]
    let routes = Self.table { [policy] in $0.key = policy }
    let account = ("X-Account", "alice")
    let order = try id("/v1/orders", policy: policy)
    #expect(try inquiry(Self.order + "%3Fid=k", [account], routes: routes).id == order)
    #expect(try inquiry(Self.order, [account, ("X-Key", "k")], routes: routes).id == order)
    #expect(try inquiry(Self.order + "&key=k", [account, ("X-Key", "other")], routes: routes).id == order)
    #expect(throws: Problem.keyMissingInInquiry) { try inquiry(Self.order, [account], routes: routes) }
  }

  @Test(arguments: [
    "", "method=POST", "path=/v1/orders", order + "&method=POST", order + "&path=/v1/orders",
    order + "&atach=1s",
    order + "&attach=1", order + "&attach=s", order + "&attach=-1s", order + "&response=yes",
    order + "&key=%4",
    "method=POST&path=v1", "method=POST&path=/a%20b", "method=PO%20ST&path=/a", "method=POST&path=/a%252Fb",
    "method=POST&path=/a%0D%0AX:1", "method=POST&path=/%ff",
    order + String(repeating: "a", count: 8 << 10), order + String(repeating: "&key=k", count: 11),
  ])
  func `a malformed question is refused`(query: String) {
    #expect(throws: Problem.badRequest(.inquiry)) { try inquiry(query) }
  }

  @Test func `what the request itself would be refused for is refused`() {
    #expect(throws: Problem.callerUnknown(.missing(.header("x-account")))) {
      try inquiry(Self.order, [("Idempotency-Key", "k")])
    }
    #expect(throws: Problem.keyMissingInInquiry) { try inquiry(Self.order, [("X-Account", "alice")]) }
    #expect(throws: Problem.keyInvalid(.comma, policy: KeyPolicy())) {
      try inquiry(Self.order + "&key=a,b", [("X-Account", "alice")])
    }
    #expect(throws: Problem.keyInvalid(.repeated, policy: KeyPolicy())) { try inquiry(Self.order + "&key=j") }
    #expect(throws: Problem.noRoute) { try inquiry("method=GET&path=/v1/orders") }
    #expect(throws: Problem.noRoute) { try inquiry(Self.order, routes: Self.table { $0.idempotency = .off }) }
    #expect(throws: Problem.callerUnknown(.missing(.json("/a")))) {
      try inquiry(Self.order, routes: Self.table { $0.caller = CallerPolicy(parts: [.json("/a")]) })
    }
  }

  @Test func `keys of the body and of several parts come as parameters`() throws {
    let body = Self.table { $0.key.from = [.json("/id")] }
    let account = [("X-Account", "alice")]
    #expect(try inquiry(Self.order + "&key=k", account, routes: body).id == id("/v1/orders"))
    let pages = Self.table { $0.key.from = [.composite([.query("a"), .query("b")])] }
    let named = try inquiry(Self.order + "&key=1&key=2", account, routes: pages).id
    #expect(try inquiry("method=POST&path=/v1/orders%3Fb=2%26a=1", account, routes: pages).id == named)
    #expect(try inquiry(Self.order + "&key=2&key=1", account, routes: pages).id != named)
  }

  @Test func `the wait is at most the route's`() throws {
    #expect(try inquiry(Self.order).attach == 0)
    for (text, span) in [("250ms", 250), ("3s", 3000), ("1m", 10_000), ("999999999m", 10_000)] {
      #expect(try inquiry(Self.order + "&attach=\(text)").attach.count == span)
    }
  }

  private static let kept = CompletedRecord(
    outcome: .whole(RecordedResponse(status: 201, fields: ByteBuffer(), body: ByteBuffer(string: "x"))),
    recordedAt: StoreInstant(milliseconds: 1000), expiresAt: StoreInstant(milliseconds: 2000),
    remaining: 1000,
    attempt: 2)
  private static let notKept = CompletedRecord(
    outcome: .statusOnly(status: 200, location: nil), recordedAt: StoreInstant(milliseconds: 1000),
    expiresAt: StoreInstant(milliseconds: 2000), remaining: 1000, attempt: 1)

  @Test func `only what is in flight is waited for, as long as there is time`() throws {
    let attached = try inquiry(Self.order + "&attach=1s")
    let flying = Standing.inFlight(leaseLeft: 70, attempt: 1)
    #expect(attached.action(on: flying, mayWait: true) == .wait(leaseLeft: 70))
    #expect(attached.action(on: flying, mayWait: false) == .report(status: 200))
    #expect(try inquiry(Self.order).action(on: flying, mayWait: true) == .report(status: 200))
    for standing in [
      Standing.absent, .unknown(age: 0, attempt: 1), .released(attempt: 1), .expired(attempt: 1),
      .completed(Self.kept),
    ] {
      #expect(attached.action(on: standing, mayWait: true) == .report(status: 200))
    }
  }

  @Test func `the response itself is replayed where it was kept, and no document is taken for it`() throws {
    let wanted = try inquiry(Self.order + "&response=true")
    #expect(wanted.action(on: .completed(Self.kept), mayWait: true) == .replay(Self.kept))
    for standing in [
      Standing.absent, .unknown(age: 0, attempt: 1), .completed(Self.notKept),
      .inFlight(leaseLeft: 1, attempt: 1),
    ] {
      #expect(wanted.action(on: standing, mayWait: true) == .report(status: 404))
    }
  }

  @Test(
    arguments: [
      (.absent, #"{"state":"absent"}"#),
      (.inFlight(leaseLeft: 5, attempt: 1), #"{"state":"in_flight","attempt":1}"#),
      (.unknown(age: 5, attempt: 2), #"{"state":"unknown","attempt":2}"#),
      (.released(attempt: 3), #"{"state":"released","attempt":3}"#),
      (.expired(attempt: 4), #"{"state":"expired","attempt":4}"#),
      (
        .completed(kept),
        #"{"state":"completed","status":201,"recorded_at":"1000","expires_at":"2000","attempt":2}"#
      ),
    ] as [(Standing, String)])
  func `a standing is one JSON object`(standing: Standing, text: String) {
    let response = OutcomeInquiry.response(standing, status: 200) { "\($0.milliseconds)" }
    #expect(String(buffer: response.body) == text + "\n")
    let fields = response.fields.map { "\($0.name): \($0.value)" }
    #expect(fields == ["Content-Type: application/json", "Cache-Control: no-store"])
  }
}
