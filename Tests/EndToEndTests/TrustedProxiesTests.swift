import TestSupport
import Testing

/// The peers whose statement about the client is believed.
struct TrustedProxiesTests {
  private static let stated = [
    ("X-Forwarded-For", "203.0.113.9, 10.1.1.1"), ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "shop.example"),
  ]

  @Test(arguments: ["/v1/orders", "/open"])
  func `a trusted proxy's fields are forwarded with its own address appended`(path: String) async throws {
    try await Rig.run(Configuration(top: ["trusted_proxies": "[127.0.0.0/8, 10.0.0.0/8]"])) { rig in
      #expect(try await rig.order("k", path: path, Self.stated).status == 201)
      let request = try #require(rig.backend.requests.first)
      #expect(request["X-Forwarded-For"] == "203.0.113.9, 10.1.1.1, 127.0.0.1")
      #expect(request["X-Forwarded-Proto"] == "https")
      #expect(request["X-Forwarded-Host"] == "shop.example")
      #expect(request["Host"] == "orders.example")
      try await rig.semel.process.line(containing: #""client":"203.0.113.9""#)
    }
  }

  @Test func `other clients' forwarding fields are replaced`() async throws {
    try await Rig.run(Configuration(top: ["trusted_proxies": "[10.0.0.0/8, unix]"])) { rig in
      expectExecuted(try await rig.order("k", Self.stated))
      let request = try #require(rig.backend.requests.first)
      #expect(request["X-Forwarded-For"] == "127.0.0.1")
      #expect(request["X-Forwarded-Proto"] == "http")
      #expect(request["X-Forwarded-Host"] == "orders.example")
      try await rig.semel.process.line(containing: #""client":"127.0.0.1""#)
    }
  }

  /// Its address cannot be read any more, and it would pass for one of a Unix socket.
  @Test func `a client that was reset before it was accepted is nobody`() async throws {
    let configuration = Configuration(top: ["trusted_proxies": "[unix]", "workers": "1"])
    try await Rig.run(configuration) { rig in
      rig.semel.freeze()
      for path in ["/v1/orders", "/open"] {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        try await client.send(
          Rig.orderText("gone", path: path).replacing(
            "\r\n", with: "\r\nX-Forwarded-For: 203.0.113.9\r\n", maxReplacements: 1))
        try await client.reset(untilDelivered: true)
      }
      rig.semel.thaw()
      // It is accepted behind them.
      expectExecuted(try await rig.order("k"))
      #expect(rig.backend.requests.map { $0["X-Forwarded-For"] } == ["127.0.0.1"])
      try await rig.semel.counter("semel_connections_refused_total", becomes: 2)
    }
  }

  @Test func `forwarding fields that a trusted proxy omits or repeats are replaced`() async throws {
    try await Rig.run(Configuration(top: ["trusted_proxies": "[127.0.0.1]"])) { rig in
      expectExecuted(try await rig.order("a", [("X-Forwarded-Host", "shop.example")]))
      #expect(rig.backend.requests[0]["X-Forwarded-For"] == "127.0.0.1")
      #expect(rig.backend.requests[0]["X-Forwarded-Proto"] == "http")
      #expect(rig.backend.requests[0]["X-Forwarded-Host"] == "shop.example")
      let twice = [("X-Forwarded-Host", "a"), ("X-Forwarded-Host", "b"), ("X-Forwarded-Proto", "gopher")]
      expectExecuted(try await rig.order("b", twice))
      #expect(rig.backend.requests[1]["X-Forwarded-Proto"] == "http")
      #expect(rig.backend.requests[1]["X-Forwarded-Host"] == "orders.example")
    }
  }

  @Test func `a caller by address is the client behind the proxy`() async throws {
    try await Rig.run(
      Configuration(top: ["trusted_proxies": "[127.0.0.1]"], route: ["caller": "{parts: [address]}"])
    ) { rig in
      let first = try await rig.order("k", [("X-Forwarded-For", "203.0.113.9")])
      expectExecuted(first)
      // The same address, written otherwise and with what a client may have put before it.
      expectReplayed(
        try await rig.order("k", [("X-Forwarded-For", "6.6.6.6, ::ffff:203.0.113.9")]), of: first)
      expectExecuted(try await rig.order("k", [("X-Forwarded-For", "203.0.113.10")]))
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: [nil, "", "unknown", "203.0.113.9, unknown", "_hidden"])
  func `a client without an address from a trusted proxy is no caller by address`(stated: String?)
    async throws
  {
    let fields = stated.map { [("X-Forwarded-For", $0)] } ?? []
    let (top, parts) = (["trusted_proxies": "[127.0.0.1]"], "{parts: [address]}")
    try await Rig.run(Configuration(top: top, route: ["caller": parts])) { rig in
      expectRefused(try await rig.order("k", fields), 401, "caller_unknown", retryable: false)
      #expect(try await rig.order(nil, path: "/open", fields).status == 201)
      #expect(rig.backend.requests.count == 1)
      try await rig.semel.process.line(containing: #""client":"127.0.0.1""#)
      var changed = rig.configuration
      changed.route["caller"] = "{parts: [address, 'header:X-User'], anonymous: allow}"
      try await rig.reloadAccepted(changed)
      expectExecuted(try await rig.order("k", fields + [("X-User", "a")]))
      expectReplayed(try await rig.order("k", fields + [("X-User", "a")]), 201)
      expectExecuted(try await rig.order("k", [("X-Forwarded-For", "127.0.0.1"), ("X-User", "a")]))
    }
  }

  @Test func `other fields about the client pass from a trusted proxy alone`() async throws {
    let fields = [("Forwarded", "for=6.6.6.6"), ("X-Real-IP", "6.6.6.6"), ("X-Forwarded-Port", "443")]
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k", fields))
      #expect(try await rig.order(nil, path: "/open", fields).status == 201)
      for request in rig.backend.requests { for (name, _) in fields { #expect(request[name] == nil) } }
      try await rig.reload { $0.top["trusted_proxies"] = "[127.0.0.1]" }
      expectExecuted(try await rig.order("l", fields))
      for (name, value) in fields { #expect(rig.backend.requests[2][name] == value) }
    }
  }

  @Test func `a reload changes the trusted proxies, with allow_identity_change`() async throws {
    try await Rig.run(Configuration(route: ["caller": "{parts: [address]}"])) { rig in
      try await rig.reload { $0.top["trusted_proxies"] = "[127.0.0.1]" }
      #expect(
        try await rig.semel.admin.send("GET", "/readyz").text.contains("trusted_proxies: or a listener"))
      var changed = rig.configuration
      changed.top["trusted_proxies"] = "[127.0.0.1]"
      try await rig.reloadAccepted(changed)
      expectExecuted(try await rig.order("k", [("X-Forwarded-For", "203.0.113.9")]))
      #expect(rig.backend.requests[0]["X-Forwarded-For"] == "203.0.113.9, 127.0.0.1")
    }
  }
}
