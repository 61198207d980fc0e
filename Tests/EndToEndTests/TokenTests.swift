import Foundation
import TestSupport
import Testing

/// Callers that are known by a claim of their token.
struct TokenTests {
  private static let caller = "{parts: ['jwt:sub']}"
  private static let good = #"{"iss":"https://id","aud":"orders","sub":"alice","iat":0,"exp":86400}"#

  private static func token(
    _ claims: String = Self.good, key: String = "rsa", _ algorithm: String = "RS256", _ more: String = ""
  ) -> String {
    #"{"key":"\#(key)","algorithm":"\#(algorithm)","claims":\#(claims)\#(more)}"#
  }

  /// Runs a test with a key set in a file.
  private func run(
    _ tokens: Tokens, _ names: [String], store: StoreKind = .embedded, jwt: String = "",
    caller: String = Self.caller, _ body: @escaping @Sendable (Rig, String) async throws -> Void
  ) async throws {
    let directory = TemporaryDirectory()
    let path = directory.file("jwks.json")
    try Self.write(tokens, names, to: path)
    let top = ["jwt": "{jwks_file: '\(path)'\(jwt)}"]
    try await Rig.run(Configuration(store: store, top: top, route: ["caller": caller])) { rig in
      try await body(rig, path)
    }
  }

  private static func write(_ tokens: Tokens, _ names: [String], to path: String) throws {
    let keys = try names.map { name in
      String(decoding: try JSONEncoder().encode(try #require(tokens.keys[name])), as: UTF8.self)
    }
    try "{\"keys\":[\(keys.joined(separator: ","))]}".write(toFile: path, atomically: true, encoding: .utf8)
  }

  @Test(arguments: StoreKind.allCases)
  func `a caller stays the same when its token is refreshed`(store: StoreKind) async throws {
    let refreshed = #"{"iss":"https://id","aud":["x","orders"],"sub":"alice","iat":1,"exp":90000,"jti":"2"}"#
    let tokens = try await Tokens(
      keys: ["rsa": "RSA", "ec": "EC", "okp": "OKP"],
      [
        Self.token(), Self.token(refreshed, key: "ec", "ES256"), Self.token(refreshed, "PS512"),
        Self.token(refreshed, key: "okp", "EdDSA"),
        Self.token(Self.good.replacing("alice", with: "bob")),
        Self.token(Self.good.replacing("https://id", with: "https://other")),
      ])
    try await run(tokens, ["rsa", "ec", "okp"], store: store, jwt: ", audience: orders") { rig, _ in
      let first = try await rig.order("k", caller: "Bearer \(tokens.tokens[0])")
      expectExecuted(first)
      for token in tokens.tokens[..<4] {
        expectReplayed(try await rig.order("k", caller: "bearer \(token)"), of: first)
      }
      // Another subject, and the same one of another issuer.
      for token in tokens.tokens[4...] { expectExecuted(try await rig.order("k", caller: "Bearer \(token)")) }
      #expect(rig.backend.requests.count == 3)
      try await rig.semel.counter("semel_tokens_verified_total", becomes: 6)
      try await rig.semel.counter("semel_tokens_known_total", becomes: 1)
      let inquiry = "/.well-known/idempotency/outcome?method=POST&path=/v1/orders"
      let fields = Rig.fields(key: "k", caller: "Bearer \(tokens.tokens[1])")
      let outcome = try await rig.semel.client.send("GET", inquiry, fields)
      #expect(outcome.text.contains(#""state":"completed""#), "\(outcome.text)")
      let selection = [
        "--route", "orders", "--key", "k", "--path", "/v1/orders", "--method", "POST", "--host",
        "orders.example", "--caller", "jwt:sub=alice",
      ]
      let shown = try await rig.key(["show"] + selection + ["--caller", "jwt_issuer=https://id"])
      #expect(shown.output.contains("completed"))
      // A token that is checked only at the inquiry.
      let late = Rig.fields(key: "other", caller: "Bearer \(tokens.tokens[2])x")
      expectRefused(
        try await rig.semel.client.send("GET", inquiry, late), 401, "caller_unknown", retryable: false)
    }
  }

  /// The record would be that of a token without `iss`, and the delivery would run.
  @Test func `a caller by token is put with its issuer`() async throws {
    let tokens = try await Tokens(
      keys: ["rsa": "RSA"], [Self.token(), Self.token(#"{"aud":"orders","sub":"alice"}"#)])
    try await run(tokens, ["rsa"]) { rig, _ in
      let put = ["put", "--applied", "--status", "200", "-H", "Content-Type: application/json"]
      let payload = ["-d", #"{"amount":1999}"#, "--caller", "jwt:sub=alice"]
      for command in [put + payload, ["show", "--caller", "jwt:sub=alice"]] {
        let refused = try await rig.key(command + Self.record("a"), ends: .code(1))
        #expect(
          refused.errors.contains(
            "route orders takes tokens of any issuer: give the caller's jwt_issuer, too"),
          "\(refused.errors)")
      }
      for (key, issuer, token) in [("a", "https://id", tokens.tokens[0]), ("b", "", tokens.tokens[1])] {
        try await rig.key(put + payload + ["--caller", "jwt_issuer=\(issuer)"] + Self.record(key))
        expectReplayed(try await rig.order(key, caller: "Bearer \(token)"), 200)
      }
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `a caller by the claim iss needs no issuer besides, and has no other one`() async throws {
    let tokens = try await Tokens(keys: ["rsa": "RSA"], [Self.token()])
    try await run(tokens, ["rsa"], caller: "{parts: ['jwt:iss', 'jwt:sub']}") { rig, _ in
      let put = [
        "put", "--applied", "--status", "200", "-H", "Content-Type: application/json", "-d",
        #"{"amount":1999}"#, "--caller", "jwt:sub=alice", "--caller", "jwt:iss=https://id",
      ]
      let other = ["--caller", "jwt_issuer=https://other"]
      let refused = try await rig.key(put + other + Self.record("a"), ends: .code(1))
      #expect(
        refused.errors.contains("no token has this caller: jwt:iss is another issuer"), "\(refused.errors)")
      try await rig.key(put + Self.record("a"))
      expectReplayed(try await rig.order("a", caller: "Bearer \(tokens.tokens[0])"), 200)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  /// The options that select the record of an order, but for its caller.
  private static func record(_ key: String) -> [String] {
    [
      "--route", "orders", "--key", key, "--path", "/v1/orders", "--method", "POST", "--host",
      "orders.example",
    ]
  }

  @Test(arguments: ["refuse", "allow"])
  func `a token that cannot be trusted names nobody`(anonymous: String) async throws {
    let wrong: [(String, String)] = [
      ("expired", Self.token(Self.good.replacing("86400", with: "-900"))),
      ("time has not come", Self.token(Self.good.replacing("\"iat\":0", with: "\"nbf\":90000"))),
      ("issuer", Self.token(Self.good.replacing("https://id", with: "https://evil"))),
      ("audience", Self.token(Self.good.replacing("orders", with: "payments"))),
      ("algorithm", Self.token(Self.good, key: "rsa", "RS256", #","forgery":"other payload""#)),
      ("algorithm", Self.token(Self.good, key: "rsa", "none", #","forgery":"none""#)),
      ("algorithm", Self.token(Self.good, key: "rsa", "HS256", #","forgery":"public key as secret""#)),
      ("algorithm", Self.token(Self.good, key: "rsa", "PS256")),
      ("algorithm", Self.token(Self.good, key: "stranger", "RS256", #","kid":"rsa""#)),
      ("algorithm", Self.token(Self.good, key: "stranger", "RS256", #","kid":null"#)),
    ]
    let tokens = try await Tokens(
      keys: ["rsa": "RSA", "stranger": "RSA"],
      wrong.map(\.1) + [Self.token(Self.good.replacing("86400", with: "-1")), Self.token(#"{"sub":["a"]}"#)])
    let jwt = ", issuer: 'https://id', audience: orders, leeway: 600s, algorithms: [RS256, ES256]"
    let caller = "{parts: ['jwt:sub'], anonymous: \(anonymous)}"
    try await run(tokens, ["rsa"], jwt: jwt, caller: caller) { rig, _ in
      for ((reason, _), token) in zip(wrong, tokens.tokens) {
        let refused = try await rig.order("k", caller: "Bearer \(token)")
        expectRefused(refused, 401, "caller_unknown", retryable: false)
        #expect(refused.problem?.detail.contains(reason) == true, "\(refused.text)")
        #expect(refused["WWW-Authenticate"] == #"Bearer error="invalid_token""#)
      }
      for credentials in ["Basic YTpi", "Bearer", "Bearer a.b", "Bearer ....", "a-bare-token"] {
        expectRefused(
          try await rig.order("k", caller: credentials), 401, "caller_unknown", retryable: false)
      }
      #expect(rig.backend.requests.isEmpty)
      // Within the leeway.
      let late = wrong.count
      expectExecuted(try await rig.order("k", caller: "Bearer \(tokens.tokens[late])"))
      let nobody = try await rig.semel.client.send("POST", "/v1/orders", [("Idempotency-Key", "k")])
      if anonymous == "allow" {
        expectExecuted(nobody)
      } else {
        expectRefused(nobody, 401, "caller_unknown", retryable: false)
        #expect(nobody["WWW-Authenticate"] == "Bearer")
      }
    }
  }

  @Test func `a claim that is no text names nobody, and one by a pointer does`() async throws {
    let claims = #"{"sub":{"id":7,"name":"alice"},"https://id/org":"acme","exp":86400.5}"#
    let tokens = try await Tokens(keys: ["ec": "EC"], [Self.token(claims, key: "ec", "ES256")])
    let caller = "{parts: ['jwt:/sub/id', 'jwt:https://id/org']}"
    try await run(tokens, ["ec"], caller: caller) { rig, path in
      let token = "Bearer \(tokens.tokens[0])"
      expectExecuted(try await rig.order("k", caller: token))
      expectReplayed(try await rig.order("k", caller: token), 201)
      var changed = rig.configuration
      changed.route["caller"] = Self.caller
      try await rig.reloadAccepted(changed)
      expectRefused(try await rig.order("k", caller: token), 401, "caller_unknown", retryable: false)
    }
  }

  @Test func `a changed key file counts within seconds, for tokens that were accepted before, too`()
    async throws
  {
    let tokens = try await Tokens(
      keys: ["old": "EC", "new": "EC"],
      [Self.token(key: "old", "ES256"), Self.token(key: "new", "ES256")])
    try await run(tokens, ["old"]) { rig, path in
      let (old, new) = ("Bearer \(tokens.tokens[0])", "Bearer \(tokens.tokens[1])")
      let first = try await rig.order("k", caller: old)
      expectExecuted(first)
      try Self.write(tokens, ["new"], to: path)
      _ = try await rig.semel.process.lines(atLeast: 2) { $0.contains("the keys of tokens were read") }
      expectReplayed(try await rig.order("k", caller: new), of: first)
      expectRefused(try await rig.order("k", caller: old), 401, "caller_unknown", retryable: false)
    }
  }

  @Test func `a key file that becomes too large is reported with the limit`() async throws {
    let tokens = try await Tokens(keys: ["rsa": "RSA"], [Self.token()])
    try await run(tokens, ["rsa"]) { rig, path in
      try String(repeating: " ", count: (1 << 20) + 1).write(toFile: path, atomically: true, encoding: .utf8)
      let line = try await rig.semel.process.line(containing: "the ones before stay in use")
      #expect(line.contains("it is larger than 1 MiB, the limit of a JWK set; take keys "), "\(line)")
      expectExecuted(try await rig.order("k", caller: "Bearer \(tokens.tokens[0])"))
    }
  }

  @Test func `a reload changes the tokens that count, and a bad one changes nothing`() async throws {
    let tokens = try await Tokens(
      keys: ["rsa": "RSA", "ec": "EC", "new": "EC"],
      [
        Self.token(), Self.token(key: "ec", "ES256"),
        Self.token(Self.good.replacing("https://id", with: "https://other"), key: "ec", "ES256"),
        Self.token(key: "new", "ES256"),
      ])
    try await run(tokens, ["rsa", "ec"]) { rig, path in
      let directory = TemporaryDirectory()
      let (rsa, ec, other, new) = (tokens.tokens[0], tokens.tokens[1], tokens.tokens[2], tokens.tokens[3])
      /// Expects that these tokens name `alice`, and no others do.
      func expectKnown(_ known: [String], sourceLocation: SourceLocation = #_sourceLocation) async throws {
        for token in tokens.tokens {
          let response = try await rig.order("k", caller: "Bearer \(token)")
          if known.contains(token) {
            #expect(response.status == 201, "\(response.text)", sourceLocation: sourceLocation)
          } else {
            expectRefused(
              response, 401, "caller_unknown", retryable: false, sourceLocation: sourceLocation)
          }
        }
      }
      try await expectKnown([rsa, ec, other])
      try await rig.reload { $0.top["jwt"] = "{jwks_file: '\(path)', issuer: 'https://id'}" }
      try await expectKnown([rsa, ec])
      try await rig.reload {
        $0.top["jwt"] = "{jwks_file: '\(path)', issuer: 'https://id', algorithms: [ES256]}"
      }
      try await expectKnown([ec])
      try Self.write(tokens, ["new"], to: directory.file("new.json"))
      try await rig.reload { $0.top["jwt"] = "{jwks_file: '\(directory.file("new.json"))'}" }
      try await expectKnown([new])
      try await rig.reload { $0.top["jwt"] = "{jwks_file: '\(directory.file("none.json"))'}" }
      try await rig.semel.counter("semel_reloads_refused_total", becomes: 1)
      try await expectKnown([new])
      // Two callers: the same subject of two issuers.
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a shared secret verifies tokens, and a gateway may have done so`() async throws {
    let secret = "0123456789abcdef0123456789abcdef"
    let directory = TemporaryDirectory()
    try "\(secret)\n".write(toFile: directory.file("secret"), atomically: true, encoding: .utf8)
    func token(_ secret: String, _ algorithm: String = "HS256") -> String {
      #"{"secret":"\#(secret)","algorithm":"\#(algorithm)","kid":"any","claims":{"sub":"alice"}}"#
    }
    let tokens = try await Tokens(
      keys: [:],
      [
        token(secret), token(secret + "x"), token(secret, "HS384"),
        #"{"forgery":"none","claims":{"sub":"alice"}}"#,
      ])
    for (jwt, accepted) in [("hmac_secret_file: '\(directory.file("secret"))'", 1), ("verify: none", 4)] {
      let configuration = Configuration(top: ["jwt": "{\(jwt)}"], route: ["caller": Self.caller])
      try await Rig.run(configuration) { rig in
        for (index, token) in tokens.tokens.enumerated() {
          let response = try await rig.order("k", caller: "Bearer \(token)")
          if index >= accepted {
            expectRefused(response, 401, "caller_unknown", retryable: false)
          } else if index == 0 {
            expectExecuted(response)
          } else {
            expectReplayed(response, 201)
          }
        }
        #expect(rig.backend.requests.count == 1)
      }
    }
  }
}

/// Key sets that are fetched.
struct KeySetTests {
  private static let path = "/jwks.json"

  /// Runs a test with a key set at an issuer of its own, which serves what is in the box.
  private func run(
    _ issuer: OrdersBackend, store: StoreKind = .embedded,
    _ body: @escaping @Sendable (Rig) async throws -> Void
  ) async throws {
    let top = ["jwt": "{jwks_url: 'http://127.0.0.1:\(issuer.port)\(Self.path)'}"]
    let route = ["caller": "{parts: ['jwt:sub']}"]
    try await Rig.run(Configuration(store: store, top: top, route: route), body)
    try await issuer.stop()
  }

  private func tokens() async throws -> Tokens {
    try await Tokens(
      keys: ["a": "EC", "b": "RSA", "c": "EC"],
      [("a", "ES256"), ("b", "RS256"), ("c", "ES256")].map {
        #"{"key":"\#($0)","algorithm":"\#($1)","claims":{"sub":"alice","exp":86400}}"#
      })
  }

  private func expectUnknown(_ rig: Rig, _ token: String, sourceLocation: SourceLocation = #_sourceLocation)
    async throws
  {
    let response = try await rig.order("k", caller: "Bearer \(token)")
    expectRefused(response, 401, "caller_unknown", retryable: false, sourceLocation: sourceLocation)
  }

  @Test(arguments: StoreKind.allCases)
  func `an unknown key has the set fetched again, once a minute`(store: StoreKind) async throws {
    let tokens = try await tokens()
    let issuer = OrdersBackend()
    try await issuer.start()
    issuer.on(
      Self.path,
      inTurn: [
        Reply(200, body: try tokens.set(of: "a")), Reply(200, body: try tokens.set(of: "a", "b")),
        Reply(200, body: try tokens.set(of: "a", "b", "c")),
      ])
    try await run(issuer, store: store) { rig in
      let first = try await rig.order("k", caller: "Bearer \(tokens.tokens[0])")
      expectExecuted(first)
      #expect(issuer.requests.count == 1)
      // Many at once share one fetch.
      try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
        for _ in 0..<8 { group.addTask { try await rig.order("k", caller: "Bearer \(tokens.tokens[1])") } }
        for try await response in group { expectReplayed(response, of: first) }
      }
      #expect(issuer.requests.count == 2)
      try await expectUnknown(rig, tokens.tokens[2])
      try await expectUnknown(rig, tokens.tokens[2])
      #expect(issuer.requests.count == 2)
      #expect(rig.backend.requests.count == 1)
      try await rig.semel.counter("semel_jwks_keys", becomes: 2)
    }
  }

  @Test func `the last good set stays in use while its issuer fails`() async throws {
    let tokens = try await tokens()
    let issuer = OrdersBackend()
    try await issuer.start()
    issuer.on(
      Self.path, inTurn: [Reply(200, body: try tokens.set(of: "a")), Reply(503, body: "{}")])
    try await run(issuer) { rig in
      let first = try await rig.order("k", caller: "Bearer \(tokens.tokens[0])")
      expectExecuted(first)
      try await expectUnknown(rig, tokens.tokens[1])
      try await rig.semel.counter("semel_jwks_fetch_failures_total", isAtLeast: 1)
      expectReplayed(try await rig.order("k", caller: "Bearer \(tokens.tokens[0])"), of: first)
      let ready = try await rig.semel.admin.send("GET", "/readyz")
      #expect(ready.status == 200)
      #expect(ready.text.contains("jwks.json: 1 key; failing: the response has status 503"), "\(ready.text)")
      try await rig.semel.process.line(containing: "the ones before stay in use")
    }
  }

  @Test func `a set that is too large is reported with the limit`() async throws {
    let issuer = OrdersBackend()
    issuer.on(Self.path) { _ in Reply(200, [], content: .filler((1 << 20) + 1)) }
    try await issuer.start()
    try await run(issuer) { rig in
      let line = try await rig.semel.process.line(containing: "the keys of tokens cannot be read")
      #expect(line.contains("it is larger than 1 MiB, the limit of a JWK set; take keys "), "\(line)")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `without keys nobody is known and nothing runs, until they are there`(store: StoreKind) async throws {
    let tokens = try await tokens()
    let issuer = OrdersBackend()
    let document = try tokens.set(of: "a")
    issuer.on(Self.path) { _ in Reply(200, body: document) }
    try await run(issuer, store: store) { rig in
      let refused = try await rig.order("k", caller: "Bearer \(tokens.tokens[0])")
      expectRefused(refused, 401, "caller_unknown", retryable: true)
      expectRetryAfter(refused)
      #expect(rig.backend.requests.isEmpty)
      let ready = try await rig.semel.admin.send("GET", "/readyz")
      #expect(ready.status == 200 && ready.text.contains("jwks.json: no keys; failing: "), "\(ready.text)")
      try await rig.semel.process.line(containing: "every request that needs a token is refused")
      try await issuer.start()
      try await rig.semel.counter("semel_jwks_keys", becomes: 1)
      expectExecuted(try await rig.order("k", caller: "Bearer \(tokens.tokens[0])"))
    }
  }
}
