import Foundation
import Idempotency
import Settings
import TestSupport
import Testing

struct WarningTests {
  @Test func `a payload without a body for the key is warned of`() throws {
    let key = "key: {from: [payload]}"
    let found = try warnings(route("\(key), fingerprint: {body: none}"))
    #expect(found.map { $0.contains("routes[0].key: takes") } == [true])
    #expect(try warnings(route(key)).isEmpty)
    let shared = upstream + "routes: [{name: r, caller: {shared: true}, \(key)}]"
    #expect(try warnings(shared).map { $0.contains("whose clients are one caller") } == [true])
  }

  @Test func `retries that max_attempts forbids are warned of`() throws {
    let text = "routes[0].retries: has no effect, because with max_attempts: 1 no second attempt is made"
    func found(_ members: String, _ warning: String = text) throws -> [Bool] {
      try warnings(route(members)).map { $0.contains(warning) }
    }
    #expect(try found("max_attempts: 1, retries: {max: 2}") == [true])
    #expect(try found("max_attempts: 2, retries: {max: 2}") == [])
    #expect(try found("max_attempts: 1, retries: off") == [])
    #expect(try found("retries: {max: 2}") == [])
    #expect(
      try found("retries: {max: 2}, wait_timeout: 0s", "has no effect, because no retry begins") == [true])
    let both = "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n"
    let defaults = "defaults: {caller: {parts: [address]}, max_attempts: 1, retries: {max: 2}}\n"
    #expect(
      try warnings(upstream + defaults + both).map { $0.contains("defaults.retries: has no") } == [true])
    let one = both.replacing("/r}}", with: "/r}, max_attempts: 1}")
    let retries = defaults.replacing(" max_attempts: 1,", with: "")
    #expect(
      try warnings(upstream + retries + one).map { $0.contains("routes[0].max_attempts: has no") } == [true])
  }

  @Test func `an unknown outcome that ends before settle is warned of`() throws {
    let text =
      "routes[0].on_unknown: has no effect, because an unknown outcome is kept for unknown_retention (5s)"
    func found(_ members: String, _ warning: String) throws -> [Bool] {
      try warnings(route(members)).map { $0.contains(warning) }
    }
    let lookup = "reconcile: {path: '/r?id={request_id}', absent: {json: {/a: b}}}"
    #expect(
      try found(
        "on_unknown: retry, unknown_retention: 5s", text.replacing("on_unknown", with: "unknown_retention"))
        == [true])
    #expect(
      try found("on_unknown: reconcile, \(lookup), unknown_retention: 5s", "shorter settle at upstreams.")
        == [true])
    #expect(try found("on_unknown: hold, unknown_retention: 5s", text) == [])
    #expect(try found("on_unknown: retry, unknown_retention: 1h", text) == [])
  }

  @Test func `a backend's own table that gets no keys is warned of`() throws {
    let text =
      "routes[0].forward_key: leaves the backend's own table of keys (behind: own_keys) without the key"
    func found(_ members: String) throws -> [Bool] { try warnings(route(members)).map { $0.contains(text) } }
    #expect(try found("forward_key: drop, behind: own_keys") == [true])
    #expect(try found("forward_key: {rename: X-A}, behind: own_keys") == [true])
    #expect(try found("forward_key: drop") == [] && found("behind: own_keys") == [])
  }

  @Test func `success that runs again is warned of`() throws {
    let text = "routes[0].outcomes: counts success under retry "
    for (members, statuses) in [
      ("outcomes: {retry: [2xx]}", "(200 and others)"), ("outcomes: {retry: [202, 409]}", "(202)"),
      ("outcomes: {retry: [2xx], final: [200, 201]}", "(202 and others)"),
    ] {
      #expect(try warnings(route(members)).map { $0.contains(text + statuses) } == [true], "\(members)")
    }
    for members in ["outcomes: {retry: [3xx, 409]}", "outcomes: {unknown: [202]}"] {
      #expect(try warnings(route(members)).isEmpty)
    }
    let defaults = "defaults: {caller: {parts: [address]}, outcomes: {retry: [2xx]}}\n"
    let both = "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n"
    #expect(
      try warnings(upstream + defaults + both).map { $0.contains("defaults.outcomes: counts") } == [true])
  }

  func warnings(_ text: String) throws -> [String] { try load(text).ownWarnings.map(\.description) }

  @Test func `a body larger than the memory for its kind is warned of`() throws {
    let limits = "limits: {body_memory: 8MiB}\n"
    for (member, warned) in [
      ("max_request_body: 6MiB", 0), ("max_request_body: 7MiB", 1), ("max_response_body: 2MiB", 0),
      ("max_response_body: 3MiB", 1),
    ] {
      let warnings = try warnings(limits + route(member)).filter { $0.contains("limits.body_memory") }
      #expect(warnings.count == warned)
      #expect(warnings.allSatisfy { $0.contains("routes[0].\(member.prefix(while: { $0 != ":" }))") })
    }
  }

  @Test(arguments: [
    ("4MiB", "", []),
    ("3MiB", "", ["a quarter of it, 768KiB, is less than the default of max_response_body"]),
    (
      "1MiB", "",
      [
        "three quarters of it, 768KiB, is less than the default of max_request_body",
        "a quarter of it, 256KiB, is less than the default of max_response_body",
      ]
    ),
    ("3MiB", "max_response_body: 1KiB, ", []), ("3MiB", "idempotency: off, ", []),
  ])
  func `a memory too small for bodies whose limit is the default is warned of once`(
    memory: String, members: String, warned: [String]
  ) throws {
    let text =
      upstream + "limits: {body_memory: \(memory)}\ndefaults: {\(members)caller: {parts: [address]}}\n"
      + "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n"
    let found = try warnings(text)
    #expect(found.count == warned.count, "\(found)")
    for (warning, expected) in zip(found, warned) {
      #expect(warning.hasPrefix("semel.yaml:2:23: limits.body_memory: \(expected), 1MiB: "), "\(warning)")
    }
  }

  @Test func `HTTP/2 by ALPN without TLS is warned of`() throws {
    for (url, http2, isWarned) in [
      ("http://h", "auto", true), ("unix:/s", "auto", true), ("https://h", "auto", false),
      ("http://h", "prior_knowledge", false), ("http://h", "off", false),
    ] {
      let found = try warnings("upstreams: {b: {url: \"\(url)\", http2: \(http2)}}\n")
      let warning = "upstreams.b.http2: has no effect without TLS"
      #expect(found.map { $0.contains(warning) } == (isWarned ? [true] : []), "\(url) \(http2): \(found)")
    }
  }

  @Test func `keys of tokens that no route needs are warned of`() throws {
    for (members, isWarned) in [
      ("caller: {parts: [address]}", true), ("idempotency: off, caller: {parts: [\"jwt:sub\"]}", true),
      ("caller: {parts: [\"jwt:sub\"]}", false), ("shadow: true, caller: {parts: [\"jwt:sub\"]}", false),
    ] {
      let found = try warnings(upstream + "jwt: {verify: none}\nroutes: [{name: r, \(members)}]\n")
      #expect(found.contains { $0.contains("semel.yaml:2:6: jwt: is unused") } == isWarned, "\(found)")
    }
  }

  /// The warnings of a file with two routes, of which the first has these members.
  private func takeOverWarnings(
    _ members: String, settle: String = "30s", defaults: String = ""
  ) throws -> [String] {
    try warnings(
      """
      shutdown_grace: 1h
      upstreams: {backend: {url: "http://h", response_timeout: 2m, settle: \(settle)}}
      defaults: {caller: {parts: [address]}\(defaults)}
      routes: [{name: r, match: {path: /r}\(members)}, {name: s, match: {path: /s}}]
      """)
  }

  @Test func `a lease that lapses before a run may be over is warned of`() throws {
    let text =
      "with on_unknown: retry, a lease of 30s is shorter than the response_timeout of 2m: where a node ends in the "
      + "middle of a request, the lease lapses and settle (30s) counts from then on, so that the request may run again "
      + "1m after it began, while its first run is still under way; write lease: 2m or more, or settle: 2m or more at "
      + "upstreams.backend"
    #expect(
      try takeOverWarnings(", on_unknown: retry") == ["semel.yaml:4:51: routes[0].on_unknown: \(text)"])
    let query = "reconcile: {path: \"/o/{request_id}\", absent: {json: {/a: b}}}"
    let reconcile = ", lease: 119s, on_unknown: reconcile, \(query)"
    let found = try takeOverWarnings(reconcile, settle: "119s")
    #expect(found.map { $0.contains("routes[0].lease: with on_unknown: reconcile") } == [true])
    for members in [
      "", ", on_unknown: hold", ", on_unknown: retry, lease: 2m",
      ", on_unknown: retry, response_timeout: 30s",
    ] {
      #expect(try takeOverWarnings(members).isEmpty, "\(members)")
    }
    #expect(try takeOverWarnings(", on_unknown: retry", settle: "2m").isEmpty)
  }

  @Test func `a lease that lapses too early is warned of once for all that inherit it`() throws {
    let inherited = try takeOverWarnings("", defaults: ", on_unknown: retry")
    #expect(inherited.map { $0.contains("defaults.on_unknown: with") } == [true])
    let own = try takeOverWarnings(", lease: 1m", defaults: ", on_unknown: retry")
    #expect(
      own.map { $0.contains("defaults.on_unknown: with") || $0.contains("routes[0].lease: with") } == [
        true, true,
      ])
    let long = try takeOverWarnings(", lease: 1m", defaults: ", on_unknown: retry, lease: 2m")
    #expect(long.map { $0.contains("routes[0].lease: with") } == [true])
  }

  @Test(arguments: [
    ("0.0.0.0", 15, true), ("[::]", 1, true), ("semel.internal", 15, true), ("0.0.0.0", 16, false),
    ("127.0.0.1", 1, false), ("[::1]", 1, false), ("localhost", 1, false),
  ])
  func `a short token is warned of where other machines reach the listener`(
    host: String, bytes: Int, isWarned: Bool
  ) throws {
    let directory = TemporaryDirectory()
    let file = directory.file("token")
    try (String(repeating: "t", count: bytes) + "\n").write(toFile: file, atomically: true, encoding: .utf8)
    let found = try warnings(upstream + "admin: {address: '\(host):1', token_file: '\(file)'}\n")
    let warning = "admin.token_file: names a token of fewer than 16 bytes, and the listener can be reached"
    #expect(found.map { $0.contains(warning) } == (isWarned ? [true] : []), "\(found)")
  }

  @Test func `a configuration that protects nothing is warned of`() throws {
    let route = "caller: {parts: [address]}"
    for (routes, count) in [
      ("[]", 1), ("[{name: r, idempotency: \"off\"}]", 1), ("[{name: r, shadow: true, \(route)}]", 0),
      ("[{name: r, idempotency: \"off\", match: {path: /r}}, {name: s, \(route)}]", 0),
    ] {
      let found = try load("\(upstream)routes: \(routes)\n").warnings.filter {
        $0.description.contains("no route protects anything")
      }
      #expect(found.count == count, "\(routes)")
    }
  }

  @Test func `responses that take longer to Redis than its time-out are warned of`() throws {
    for (size, count) in [("4MiB", 0), ("6MiB", 1)] {
      let found = try warnings(
        "\(upstream)store: {kind: redis, url: \"redis://h\", timeout: 500ms}\n"
          + "routes: [{name: r, caller: {parts: [address]}, max_response_body: \(size)}]\n")
      #expect(found.count { $0.contains("may take longer to reach the store") } == count)
    }
  }

  @Test func `a grace shorter than a response may take is reported`() throws {
    let warning = "30s is shorter than the longest response_timeout, 1m: a stop may leave requests unknown"
    #expect(
      try warnings("upstreams: {b: {url: \"http://h\", response_timeout: 1m}}\nshutdown_grace: 30s") == [
        "semel.yaml:2:17: shutdown_grace: \(warning)"
      ])
    #expect(
      try warnings("upstreams: {b: {url: \"http://h\", response_timeout: 36s}}") == [
        "semel.yaml:1:12: shutdown_grace: 35s is shorter than the longest response_timeout, 36s: "
          + "a stop may leave requests unknown"
      ])
  }

  @Test(arguments: [
    ("127.0.0.1:8080", "127.0.0.1:8080", true), ("127.0.0.1:8080", "localhost:8080", true),
    ("0.0.0.0:8080", "127.0.0.2:8080", true), ("[::]:8080", "[::1]:8080", true),
    ("127.0.0.1:8080", "0.0.0.0:8080", true), ("10.0.0.1:8080", "0.0.0.0:8080", false),
    ("localhost:8080", "127.0.0.1:8080", true), ("127.0.0.1:8080", "127.0.0.1:8081", false),
    ("127.0.0.1:8080", "10.0.0.1:8080", false), ("0.0.0.0:8080", "10.0.0.1:8080", false),
    ("0.0.0.0:0", "127.0.0.1:8080", false), ("0.0.0.0:8080", "orders:8080", false),
  ])
  func `an upstream that is a listener of Semel is reported`(
    _ listener: String, _ upstream: String, _ isReported: Bool
  ) throws {
    let text = "listen: [{address: \"\(listener)\"}]\nupstreams: {b: {url: \"http://\(upstream)\"}}"
    let reported = try warnings(text).contains { $0.contains("b is a listener of this Semel, \(upstream)") }
    #expect(reported == isReported)
  }

  @Test func `several upstreams without a route for the rest are reported`() throws {
    let text = "upstreams: {a: {url: \"http://a\"}, b: {url: \"http://b\"}}"
    #expect(
      try warnings(text) == [
        "semel.yaml:1:12: upstreams: there are several upstreams, and no route that takes every request: "
          + "what meets no route cannot be passed through"
      ])
    #expect(try load(text).onlyUpstream == nil)
    #expect(try warnings(text + "\nroutes: [{name: r, upstream: a, idempotency: off}]").isEmpty)
    // It leaves GET and its like to others.
    #expect(try warnings(text + "\nroutes: [{name: r, upstream: a, caller: {parts: [address]}}]").count == 1)
  }
}
