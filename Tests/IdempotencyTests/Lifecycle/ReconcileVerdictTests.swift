import Idempotency
import NIOCore
import Testing
import Wire

/// The statement of a backend's response to a query about an unknown outcome.
struct ReconcileVerdictTests {
  @Test func `the statuses of the query's response are verdicts`() {
    var policy = ReconcilePolicy(path: "/orders?id={request_id}")
    policy.status = 201
    func verdict(_ status: Int) -> ProbeVerdict {
      let response = ProbeResponse(status: status, contentType: "text/plain", body: ByteBuffer(string: "x"))
      return policy.verdict(of: response, method: .post)
    }
    let kept = RecordedResponse(
      status: 201, fields: ByteBuffer(string: "Content-Type: text/plain\r\n"), body: ByteBuffer(string: "x"))
    #expect(verdict(200) == .applied(.whole(kept)))
    let cors = CORSPolicy(origins: ["https://a.example", "https://b.example"])
    let response = ProbeResponse(status: 200, body: ByteBuffer())
    let allowed = RecordedResponse(
      status: 201, fields: ByteBuffer(string: "Access-Control-Allow-Origin: https://a.example\r\n"),
      body: ByteBuffer())
    #expect(policy.verdict(of: response, method: .post, cors: cors) == .applied(.whole(allowed)))
    for type in ["text/\u{1}", "text/plain\rA: b", "a\u{7F}"] {
      let response = ProbeResponse(status: 200, contentType: type, body: ByteBuffer(string: "x"))
      let kept = RecordedResponse(status: 201, fields: ByteBuffer(), body: ByteBuffer(string: "x"))
      #expect(policy.verdict(of: response, method: .post) == .applied(.whole(kept)))
    }
    for status in [201, 302, 401, 404, 410, 500, 503] { #expect(verdict(status) == .none) }
    #expect(policy.verdict(of: nil, method: .post) == .none)
    let large = ProbeResponse(status: 200, body: nil)
    #expect(policy.verdict(of: large, method: .post) == .applied(.statusOnly(status: 201, location: nil)))
    #expect(policy.target(about: RecordID(.sample(1))) == "/orders?id=\(RecordID(.sample(1)).text)")
  }

  private static let lookups: [(status: Int, field: String?, body: String?, isAbsent: Bool)] = [
    (404, "none", #"{"error":{"code":"order_not_found"},"found":false,"n":0}"#, true),
    (404, "none", #"{"n":0,"found":false,"error":{"code":"order_not_found","x":1}}"#, true),
    (404, nil, #"{"error":{"code":"order_not_found"},"found":false,"n":0}"#, false),
    (404, "other", #"{"error":{"code":"order_not_found"},"found":false,"n":0}"#, false),
    (404, "none", #"{"error":{"code":"no_route"},"found":false,"n":0}"#, false),
    (404, "none", #"{"error":{"code":"order_not_found"},"found":true,"n":0}"#, false),
    (404, "none", #"{"error":{"code":"order_not_found"},"found":false,"n":1}"#, false),
    (404, "none", #"{"error":{"code":"order_not_found"},"found":false,"n":0,"n":0}"#, false),
    (404, "none", "Not Found", false), (404, "none", nil, false),
    (410, "none", #"{"error":{"code":"order_not_found"},"found":false,"n":0}"#, false),
  ]

  @Test(arguments: lookups)
  func `only what the query's handler makes states that a request is absent`(
    status: Int, field: String?, body: String?, isAbsent: Bool
  ) throws {
    var policy = ReconcilePolicy(path: "/orders?id={request_id}")
    var absence = ReconcilePolicy.Absence()
    absence.headers = [ReconcilePolicy.Field(name: "X-Lookup", value: "none")]
    absence.members = [
      .init(pointer: "/error/code", value: "order_not_found"), .init(pointer: "/found", value: "false"),
      .init(pointer: "/n", value: "0"),
    ]
    policy.absent = absence
    var request = Request()
    request.fields = field.map { [("x-lookup", $0)] } ?? []
    let response = ProbeResponse(
      status: status, head: request.head, body: body.map { ByteBuffer(string: $0) })
    #expect(policy.verdict(of: response, method: .post) == (isAbsent ? .absent : .none))
  }

  @Test(arguments: [
    ([("x-lookup", "none"), ("Age", "0")], true), ([("x-lookup", "none"), ("X-Cache", "MISS")], true),
    ([("x-lookup", "none"), ("Age", "1")], false), ([("x-lookup", "none"), ("X-Cache", "HIT, HIT")], false),
    ([("x-lookup", "none"), ("CF-Cache-Status", "HIT")], false),
    ([("x-lookup", "none"), ("x-lookup", "none")], true),
    ([("x-lookup", "none"), ("x-lookup", "found")], false),
  ])
  func `neither a cache nor a handler that contradicts itself states that a request is absent`(
    fields: [(String, String)], isAbsent: Bool
  ) {
    var policy = ReconcilePolicy(path: "/orders?id={request_id}")
    policy.absent = ReconcilePolicy.Absence()
    policy.absent?.headers = [ReconcilePolicy.Field(name: "X-Lookup", value: "none")]
    var request = Request()
    request.fields = fields
    let response = ProbeResponse(status: 404, head: request.head, body: ByteBuffer())
    #expect(policy.verdict(of: response, method: .post) == (isAbsent ? .absent : .none))
  }

  @Test func `what is recorded under 204 has no content`() {
    var policy = ReconcilePolicy(path: "/orders?id={request_id}")
    policy.status = 204
    let response = ProbeResponse(status: 200, contentType: "text/plain", body: ByteBuffer(string: "x"))
    let kept = RecordedResponse(status: 204, fields: ByteBuffer(), body: ByteBuffer())
    #expect(policy.verdict(of: response, method: .post) == .applied(.whole(kept)))
  }

  @Test func `a status of applied is absent where the body says so`() {
    var policy = ReconcilePolicy(path: "/orders?id={request_id}")
    policy.absent = ReconcilePolicy.Absence()
    policy.absent?.statuses = [200]
    policy.absent?.members = [.init(pointer: "/count", value: "0")]
    func verdict(_ body: String) -> ProbeVerdict {
      policy.verdict(of: ProbeResponse(status: 200, body: ByteBuffer(string: body)), method: .post)
    }
    #expect(verdict(#"{"count":0,"orders":[]}"#) == .absent)
    #expect(verdict(#"{"count":1,"orders":[7]}"#).isApplied)
  }
}
