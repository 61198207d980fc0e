import Foundation
import TestSupport
import Testing

/// Callers that are known by the first of several parts which their requests have.
struct CallerAlternativesTests {
  private static let caller = "{parts: ['jwt:sub | cookie:sid']}"
  private static let top = ["jwt": "{verify: none}"]

  /// A token as a gateway has verified it.
  private static func token(_ subject: String) -> String {
    let parts = [#"{"alg":"none"}"#, #"{"sub":"\#(subject)"}"#].map { text in
      Data(text.utf8).base64EncodedString().replacing("=", with: "").replacing("+", with: "-")
        .replacing("/", with: "_")
    }
    return "\(parts.joined(separator: "."))."
  }

  private static func order(
    _ rig: Rig, _ fields: [(String, String)], path: String = "/v1/orders"
  ) async throws -> ReceivedResponse {
    try await rig.semel.client.send(
      "POST", path, [("Idempotency-Key", "k"), ("Content-Type", "application/json")] + fields,
      body: #"{"amount":1999}"#)
  }

  private static func bearer(_ subject: String) -> (String, String) {
    ("Authorization", "Bearer \(token(subject))")
  }

  @Test(arguments: StoreKind.allCases)
  func `clients with a token and with a session are callers of one route`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, top: Self.top, route: ["caller": Self.caller])) { rig in
      let alice = try await Self.order(rig, [Self.bearer("alice"), ("Cookie", "sid=1")])
      expectExecuted(alice)
      expectReplayed(try await Self.order(rig, [Self.bearer("alice"), ("Cookie", "sid=2")]), of: alice)
      expectReplayed(try await Self.order(rig, [Self.bearer("alice")]), of: alice)
      let guest = try await Self.order(rig, [("Cookie", "sid=1")])
      expectExecuted(guest)
      expectReplayed(try await Self.order(rig, [("Cookie", "sid=1")]), of: guest)
      for fields in [
        [], [("Authorization", "Bearer x.y"), ("Cookie", "sid=1")],
        [("Authorization", "Basic YTpi"), ("Cookie", "sid=1")], [("Cookie", "sid=1; sid=1")],
      ] {
        expectRefused(try await Self.order(rig, fields), 401, "caller_unknown", retryable: false)
      }
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a token in a cookie or another field names the caller`(store: StoreKind) async throws {
    let caller = "{parts: ['jwt:sub | jwt:sub@cookie:session | jwt:sub@header:X-Access-Token']}"
    try await Rig.run(Configuration(store: store, top: Self.top, route: ["caller": caller])) { rig in
      let (alice, bob) = (Self.token("alice"), Self.token("bob"))
      let page = try await Self.order(rig, [("Cookie", "theme=dark; session=\(alice)")])
      expectExecuted(page)
      expectReplayed(try await Self.order(rig, [("Cookie", "session=\"Bearer \(alice)\"")]), of: page)
      expectExecuted(try await Self.order(rig, [("Cookie", "session=\(bob)")]))
      let gateway = try await Self.order(rig, [("X-Access-Token", alice)])
      expectExecuted(gateway)
      expectReplayed(try await Self.order(rig, [("X-Access-Token", "DPoP \(alice)")]), of: gateway)
      expectExecuted(try await Self.order(rig, [Self.bearer("alice"), ("Cookie", "session=\(bob)")]))
      for fields in [[("Cookie", "session=x.y")], [("Cookie", "session=\(alice); session=\(alice)")], []] {
        let refused = try await Self.order(rig, fields)
        expectRefused(refused, 401, "caller_unknown", retryable: false)
        #expect((refused["WWW-Authenticate"] == nil) == !fields.isEmpty)
      }
      #expect(rig.backend.requests.count == 4)
      let record = [
        "show", "--route", "orders", "--key", "k", "--path", "/v1/orders", "--method", "POST", "--host",
        "orders.example", "--caller",
      ]
      let shown = try await rig.key(
        record + ["jwt:sub@header:X-Access-Token=alice", "--caller", "jwt_issuer="])
      #expect(shown.output.contains("completed"))
    }
  }

  @Test func `records of before are found where an alternative was added`() async throws {
    let alone = Configuration(top: Self.top, route: ["caller": "{parts: ['jwt:sub']}"])
    try await Rig.run(alone) { rig in
      let alice = try await Self.order(rig, [Self.bearer("alice")])
      expectExecuted(alice)
      expectRefused(try await Self.order(rig, [("Cookie", "sid=1")]), 401, "caller_unknown", retryable: false)
      var changed = rig.configuration
      changed.route["caller"] = Self.caller
      try await rig.reloadAccepted(changed)
      expectExecuted(try await Self.order(rig, [("Cookie", "sid=1")]))
      expectReplayed(try await Self.order(rig, [Self.bearer("alice"), ("Cookie", "sid=1")]), of: alice)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a part in the body counts where no earlier one is there`() async throws {
    let caller = "{parts: ['header:X-Account | json:/amount']}"
    try await Rig.run(Configuration(route: ["caller": caller])) { rig in
      expectExecuted(try await Self.order(rig, [("X-Account", "a")]))
      expectExecuted(try await Self.order(rig, []))
      expectReplayed(try await Self.order(rig, []), 201)
      expectReplayed(try await Self.order(rig, [("X-Account", "a")]), 201)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `operators name the alternative that counts`() async throws {
    try await Rig.run(Configuration(top: Self.top, route: ["caller": Self.caller])) { rig in
      expectExecuted(try await Self.order(rig, [("Cookie", "sid=1")]))
      let record = [
        "--route", "orders", "--key", "k", "--path", "/v1/orders", "--method", "POST", "--host",
        "orders.example",
      ]
      let shown = try await rig.key(["show"] + record + ["--caller", "cookie:sid=1"])
      #expect(shown.output.contains("completed"))
      let missing = try await rig.key(["show"] + record, ends: .code(1))
      #expect(
        missing.errors.contains("route orders needs one of the caller's jwt:sub, cookie:sid: give the first"),
        "\(missing.errors)")
      // The payload's own cookie would make another caller.
      let put = ["put", "--applied", "--status", "200", "-d", #"{"amount":1999}"#] + record
      let refused = try await rig.key(
        put + ["--caller", "cookie:sid=2", "-H", "Cookie: sid=3"], ends: .code(1))
      #expect(
        refused.errors.contains("the payload has another caller than the record, at cookie:sid"),
        "\(refused.errors)")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a part may be missing while the others may not`(store: StoreKind) async throws {
    let caller = "{parts: ['header:Authorization', 'header?:Stripe-Account']}"
    try await Rig.run(Configuration(store: store, route: ["caller": caller])) { rig in
      let platform = ("Authorization", "Bearer sk")
      let account = ("Stripe-Account", "acct_1")
      let own = try await Self.order(rig, [platform])
      expectExecuted(own)
      let connected = try await Self.order(rig, [platform, account])
      expectExecuted(connected)
      expectReplayed(try await Self.order(rig, [platform]), of: own)
      expectReplayed(try await Self.order(rig, [platform, account]), of: connected)
      expectRefused(try await Self.order(rig, [account]), 401, "caller_unknown", retryable: false)
      expectRefused(
        try await Self.order(rig, [platform, account, account]), 401, "caller_unknown", retryable: false)
      #expect(rig.backend.requests.count == 2)
      let shown = try await rig.key([
        "show", "--route", "orders", "--key", "k", "--path", "/v1/orders", "--method", "POST", "--host",
        "orders.example", "--caller", "header:Authorization=Bearer sk", "--caller",
        "header?:Stripe-Account=acct_1",
      ])
      #expect(shown.output.contains("completed"))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `what stays the same in credentials is the caller`(store: StoreKind) async throws {
    let caller = "{parts: ['basic:user | sigv4:access_key | jwt:sub']}"
    try await Rig.run(Configuration(store: store, top: Self.top, route: ["caller": caller])) { rig in
      func signed(_ date: String, _ signature: String) -> (String, String) {
        (
          "Authorization",
          "AWS4-HMAC-SHA256 Credential=AKID/\(date)/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=\(signature)"
        )
      }
      let dpop = ("Authorization", "DPoP \(Self.token("alice"))")
      for (one, other) in [
        (("Authorization", "Basic YWxpY2U6b25l"), ("Authorization", "Basic YWxpY2U6dHdv")),
        (signed("20251130", "a"), signed("20251201", "b")), (dpop, Self.bearer("alice")),
      ] {
        let first = try await Self.order(rig, [one])
        expectExecuted(first)
        expectReplayed(try await Self.order(rig, [other]), of: first)
      }
      let refused = try await Self.order(rig, [("Authorization", "Digest a=b")])
      expectRefused(refused, 401, "caller_unknown", retryable: false)
      #expect(rig.backend.requests.count == 3)
      let shown = try await rig.key([
        "show", "--route", "orders", "--key", "k", "--path", "/v1/orders", "--method", "POST", "--host",
        "orders.example", "--caller", "basic:user=alice",
      ])
      #expect(shown.output.contains("completed"))
    }
  }
}
