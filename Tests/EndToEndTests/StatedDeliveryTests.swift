import Foundation
import TestSupport
import Testing

/// `semel key put` on deliveries that would not meet the record: each would run, or be refused.
struct StatedDeliveryTests {
  private static let routes = [
    "{name: v2, match: {methods: [POST], path: /v1/versions, headers: {X-Version: '2'}}, caller: {shared: true}}",
    "{name: v1, match: {methods: [POST], path: /v1/versions}, caller: {shared: true}}",
    "{name: only, match: {methods: [POST], path: /only, headers: {X-Version: '3'}}, caller: {shared: true}}",
    "{name: open, match: {methods: [PUT], path: /v1/items/a}, idempotency: off}",
    "{name: items, match: {path: '/v1/items/{id}'}, caller: {shared: true}, fingerprint: {headers: [X-Part]}, "
      + "max_request_body: 1KiB}",
    "{name: mutations, match: {methods: [POST], path: /v1/graphql, graphql: mutation}, caller: {shared: true}}",
    "{name: acme, match: {methods: [POST], path: /v1/tenants, headers: {X-Tenant: acme}}, caller: {shared: true}}",
    "{name: tenants, match: {methods: [POST], path: /v1/tenants}, caller: {parts: ['header:X-Tenant']}}",
    "{name: members, match: {methods: [POST], path: /v1/members}, caller: {shared: true}, key: {from: ['json:/id']}}",
    "{name: pairs, match: {methods: [POST], path: /v1/pairs}, caller: {shared: true}, "
      + "key: {from: [['query:token', 'json:/page']]}}",
    "{name: forms, match: {methods: [POST], path: /v1/forms}, caller: {shared: true}, key: {from: ['form:id']}}",
  ]

  private static let json = ["-H", "Content-Type: application/json"]
  private static let order = json + ["-d", #"{ "amount" : 1999 }"#]

  private func put(
    _ rig: Rig, _ route: String, _ more: [String], keys: [String] = ["a"], ends exit: ManagedProcess.Exit
  ) async throws -> String {
    let record = ["--route", route, "--host", "orders.example"] + keys.flatMap { ["--key", $0] }
    return try await rig.key(["put", "--applied", "--status", "202"] + record + more, ends: exit).errors
  }

  @Test(arguments: StoreKind.allCases)
  func `the outcomes of an earlier table are put line by line`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      func line(_ key: String, _ status: Int) -> String {
        #"{"record":{"route":"orders","key":"\#(key)","caller":{"header:Authorization":"Bearer alice"},"#
          + #""path":"/v1/orders","method":"POST","host":"orders.example"},"#
          + #""payload":{"headers":{"Content-Type":"application/json"},"body":"{\"amount\":1999}"},"#
          + #""resolution":{"outcome":"applied","status":\#(status),"body":"from before"}}"#
      }
      let file = FileManager.default.temporaryDirectory.appending(path: "put-\(UUID().uuidString).jsonl")
      defer { try? FileManager.default.removeItem(at: file) }
      let lines = [line("a", 201), "", "no JSON", line("b", 202), line("a", 203)]
      try lines.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
      let command = "'\(SemelProcess.binary)' key put --stream --admin \(rig.adminURL) < '\(file.path)'"
      let process = try ManagedProcess(["/bin/sh", "-c", command])
      #expect(try await process.exit(within: .seconds(20)) == .code(1))
      #expect(process.output == "2 put\n", "\(process.errors)")
      for refused in ["line 3 was not put", "line 5 was not put"] {
        #expect(process.errors.contains(refused), "\(process.errors)")
      }
      for (key, status) in [("a", 201), ("b", 202)] {
        let response = try await rig.order(key)
        expectReplayed(response, status)
        #expect(response.text == "from before")
      }
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `a payload that meets another route is not put`() async throws {
    try await Rig.run(Configuration(firstRoutes: Self.routes)) { rig in
      let query = Self.json + ["-d", #"{"query":"{a}"}"#]
      for (route, more, text) in [
        ("v1", ["-H", "X-Version: 2"], "meets route v2 instead of v1"),
        ("only", ["-H", "X-Version: 4"], "meets no route"),
        ("items", ["--method", "PUT", "--path", "/v1/items/a/"], "meets route open instead of items"),
        ("mutations", query, "meets route orders instead of mutations"),
        ("tenants", ["--caller", "header:X-Tenant=acme"], "meets route acme instead of tenants"),
        ("v1", ["-H", "Host: other.example"], "has another host than the record"),
      ] {
        let errors = try await put(rig, route, more, ends: .code(1))
        #expect(errors.contains("payload \(text)"), "\(route) \(more): \(errors)")
      }
    }
  }

  @Test func `a payload that its route refuses is not put`() async throws {
    try await Rig.run(Configuration(firstRoutes: Self.routes)) { rig in
      let item = ["--path", "/v1/items/b", "--method"]
      for (more, text) in [
        (["PUT", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket"], "is refused (not_implemented)"),
        (["PUT", "-H", "Content-Type: application/grpc+proto"], "is refused (not_implemented)"),
        (["PUT", "-H", "Connection: X-Part", "-H", "X-Part: 1"], "is refused (bad_request): Do not name"),
        (["PUT", "-d", String(repeating: "x", count: 1025)], "is refused (request_too_large)"),
      ] {
        let errors = try await put(rig, "items", item + more, ends: .code(1))
        #expect(errors.contains("a delivery of this payload \(text)"), "\(more): \(errors)")
      }
    }
  }

  @Test func `a payload without the key that belongs in its body is not put`() async throws {
    try await Rig.run(Configuration(firstRoutes: Self.routes)) { rig in
      let form = ["-H", "Content-Type: application/x-www-form-urlencoded", "-d", "name=x"]
      for (route, keys, more) in [
        ("members", ["a"], Self.json + ["-d", #"{"x":1}"#]), ("members", ["a"], []),
        ("pairs", ["a", "b"], Self.json + ["-d", "{}", "--query", "token=a"]), ("forms", ["a"], form),
      ] {
        let errors = try await put(rig, route, more, keys: keys, ends: .code(1))
        #expect(errors.contains("no delivery of this payload has the record's key"), "\(route): \(errors)")
      }
    }
  }

  @Test func `a payload is put as its delivery meets the route`() async throws {
    try await Rig.run(Configuration(firstRoutes: Self.routes)) { rig in
      // The field by which the route is met may be left out.
      _ = try await put(rig, "only", Self.order, ends: .code(0))
      expectReplayed(try await rig.order("a", path: "/only", [("X-Version", "3")]), 202)
      _ = try await put(rig, "v1", Self.order + ["-H", "X-Version: 1"], ends: .code(0))
      expectReplayed(try await rig.order("a", path: "/v1/versions", [("X-Version", "1")]), 202)
      let item = ["--path", "/v1/items/b", "--method", "POST", "-H", "X-Part: 1"]
      _ = try await put(rig, "items", Self.order + item, ends: .code(0))
      expectReplayed(try await rig.order("a", path: "/v1/items/b", [("X-Part", "1")]), 202)
      let mutation = #"{"query":"mutation{a}"}"#
      _ = try await put(rig, "mutations", Self.json + ["-d", mutation], ends: .code(0))
      expectReplayed(try await rig.order("a", body: mutation, path: "/v1/graphql"), 202)
      _ = try await put(rig, "tenants", Self.order + ["--caller", "header:X-Tenant=other"], ends: .code(0))
      expectReplayed(try await rig.order("a", path: "/v1/tenants", [("X-Tenant", "other")]), 202)
      _ = try await put(rig, "members", Self.json + ["-d", #"{"id":"a"}"#], ends: .code(0))
      expectReplayed(try await rig.order(nil, body: #"{"id":"a"}"#, path: "/v1/members"), 202)
      #expect(rig.backend.requests.isEmpty)
    }
  }
}
