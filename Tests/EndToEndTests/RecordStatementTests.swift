import Foundation
import Glibc
import TestSupport
import Testing

/// The undo of operators: outcomes of what was executed by hand, and the resolution of many.
struct RecordStatementTests {
  private static let order = [
    "-H", "Content-Type: application/json", "-d", #"{ "amount" : 1999 }"#,
  ]
  private static let put = ["put", "--applied", "--status", "201", "--header", "X-Order: 7"]

  @Test(arguments: StoreKind.allCases)
  func `what was executed by hand is replayed and not run`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let body = TemporaryDirectory()
      try "by hand".write(toFile: body.file("body"), atomically: true, encoding: .utf8)
      let shown = try await rig.key(
        Self.put + ["--body", body.file("body")] + Self.order + Rig.selection("a")
      ).output
      #expect(shown.contains(#""state" : "completed""#), "\(shown)")
      try await rig.semel.process.line(containing: #""message":"audit","action":"put""#)
      let replay = try await rig.order("a")
      expectReplayed(replay, 201)
      #expect(replay.text == "by hand" && replay["X-Order"] == "7")
      expectRefused(try await rig.order("a", body: "{}"), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.isEmpty)
      try await rig.key(["resolve", "--amend", "--applied", "--status", "200"] + Rig.selection("a"))
      expectReplayed(try await rig.order("a"), 200)
    }
  }

  /// Its record would never be met by a delivery, which would run.
  @Test func `what the route does not take is not put, nor shown`() async throws {
    let match = "{methods: [POST], path: '/v1/{kind}', host: orders.example}"
    try await Rig.run(Configuration(route: ["match": match])) { rig in
      let payload = Self.put + Self.order
      for (other, text) in [
        (["--path", "/v2/orders"], "does not take the path /v2/orders: it takes /v1/{kind}"),
        (["--path", "http://orders.example/v1/a"], "give a URL's path and host apart"),
        (["--host", "other.example"], "takes requests to orders.example alone: give their host"),
      ] {
        for command in [payload, ["show"]] {
          let refused = try await rig.key(command + Rig.selection("a") + other, ends: .code(1))
          #expect(refused.errors.contains(text), "\(refused.errors)")
        }
      }
      try await rig.key(payload + Rig.selection("a"))
      expectReplayed(try await rig.order("a"), 201)
    }
  }

  @Test(arguments: [
    ("false", "Send the method that is meant"), ("true", "meets route orders as PUT: give method"),
  ])
  func `a payload that names another method is not put`(override: String, text: String) async throws {
    try await Rig.run(Configuration(route: ["method_override": override])) { rig in
      let header = ["-H", "X-HTTP-Method-Override: PUT"]
      let refused = try await rig.key(
        Self.put + Self.order + header + Rig.selection("a"), ends: .code(1))
      #expect(refused.errors.contains(text), "\(refused.errors)")
    }
  }

  /// Routes with callers of three kinds, for `/v1/address`, `/v1/token` and `/v1/session`.
  private static let callers = [
    "{name: address, match: {methods: [POST], path: /v1/address}, caller: {parts: [address]}}",
    "{name: token, match: {methods: [POST], path: /v1/token}, caller: {parts: ['header:Authorization']}}",
    "{name: session, match: {methods: [POST], path: /v1/session}, caller: {parts: ['cookie:sid']}}",
  ]

  private static func selection(_ route: String, _ key: String, _ callers: String...) -> [String] {
    ["--route", route, "--key", key, "--host", "orders.example"] + callers.flatMap { ["--caller", $0] }
  }

  /// The record would be that of nobody, and the delivery would run.
  @Test func `a caller that no delivery can have is neither put nor shown, forgotten or resolved`()
    async throws
  {
    try await Rig.run(Configuration(firstRoutes: Self.callers)) { rig in
      for (route, caller, text) in [
        ("address", "address=127.0.0.1:80", "write an IP address without a port"),
        ("address", "address=127.0.0.01", "write an IP address without a port"),
        ("address", "address=[::1]", "write an IP address without a port"),
        ("address", "address=foo", "write an IP address without a port"),
        ("address", "address=", "needs the caller's address"),
        ("token", "header:Authorization=Bearer", "with the credentials after its scheme: Bearer TOKEN"),
        ("token", "header:Authorization= Bearer ", "with the credentials after its scheme: Bearer TOKEN"),
        ("token", "header:Authorization=Digest x", "refuses the scheme of this header:authorization"),
        ("token", "header:Authorization=Bearer a\nb", "without line ends"),
        ("session", "cookie:sid=a; b=c", "without semicolons"),
        ("session", "cookie:SID=a", "needs the caller's cookie:sid"),
      ] {
        for command in [
          Self.put + Self.order, ["show"], ["forget"], ["resolve", "--not-applied"],
        ] {
          let refused = try await rig.key(command + Self.selection(route, "a", caller), ends: .code(1))
          #expect(refused.errors.contains(text), "\(command) \(caller): \(refused.errors)")
        }
      }
      let repeated = try await rig.key(
        ["show"]
          + Self.selection("token", "a", "header:Authorization=Bearer a", "Header:AUTHORIZATION=Bearer b"),
        ends: .code(2))
      #expect(repeated.errors.contains("is given twice: give each part once"), "\(repeated.errors)")
      let members = try await rig.semel.admin.send(
        "POST", "/v1/records/find", [("Content-Type", "application/json")],
        body:
          #"{"route":"token","key":"a","caller":{"header:Authorization":"Bearer a","Header:authorization":"x"}}"#
      )
      #expect(members.status == 400 && members.text.contains("is given twice"), "\(members.text)")
    }
  }

  @Test func `a caller is put as its deliveries have it`() async throws {
    try await Rig.run(Configuration(firstRoutes: Self.callers)) { rig in
      for (number, (route, caller)) in [
        ("address", "address=127.0.0.1"), ("address", "address=::ffff:127.0.0.1"),
        ("address", "address=::FFFF:7f00:1"), ("token", "header:Authorization=Bearer alice"),
        ("token", "HEADER:authorization= \t Bearer alice  "), ("session", "cookie:sid= s "),
      ].enumerated() {
        let key = "key-\(number)"
        try await rig.key(Self.put + Self.order + Self.selection(route, key, caller))
        let response = try await rig.order(key, path: "/v1/\(route)", [("Cookie", "x=1; sid=s")])
        #expect(response["Idempotency-Status"] == "replayed", "\(caller): \(response.text)")
      }
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `nothing is put on a shadowed route, which would not replay it`() async throws {
    try await Rig.run(Configuration(route: ["shadow": "true"])) { rig in
      let refused = try await rig.key(Self.put + Self.order + Rig.selection("a"), ends: .code(1))
      #expect(refused.errors.contains("route orders is shadowed"), "\(refused.errors)")
    }
  }

  /// Such a payload belongs to another key, or none: its delivery would run.
  @Test func `a payload with another key than the record is not put`() async throws {
    let pages = """
      {name: pages, match: {methods: [POST], path: /v1/pages}, caller: {shared: true},
       key: {from: [['query:token', 'query:page'], 'header:Idempotency-Key', 'json:/id']}}
      """.replacing("\n", with: " ")
    try await Rig.run(Configuration(firstRoutes: [pages])) { rig in
      func put(_ keys: [String], _ more: [String], ends exit: ManagedProcess.Exit) async throws -> String {
        try await rig.key(
          Self.put + ["--route", "pages", "--host", "orders.example"] + keys.flatMap { ["--key", $0] } + more,
          ends: exit
        ).errors
      }
      for (keys, more, text) in [
        (["1", "6"], ["--query", "token=1&page=7"], "has another key than the record, at"),
        (["1", "6"], ["--query", "token=1"], "no delivery of this payload has the record's key"),
        (["1", "6"], [], "no delivery of this payload has the record's key"),
        (["1", "6"], ["--query", "token=1&page=6&page=6"], "is refused (key_invalid)"),
        (["a"], ["--query", "token=1&page=6"], "has another key than the record, at"),
        (["a"], ["-H", "Idempotency-Key: b"], "has another key than the record, at header:idempotency-key"),
        (["1", "6"], ["--query", "?token=1&page=6"], "begins with its question mark"),
      ] {
        let errors = try await put(keys, more, ends: .code(1))
        #expect(errors.contains(text), "\(keys) \(more): \(errors)")
      }
      _ = try await put(["1", "6"], Self.order + ["--query", "page=%36&token=1"], ends: .code(0))
      expectReplayed(try await rig.order(nil, path: "/v1/pages?token=1&page=6"), 201)
      _ = try await put(["a"], Self.order, ends: .code(0))
      expectReplayed(try await rig.order("a", path: "/v1/pages"), 201)
      let member = ["-H", "Content-Type: application/json", "-d", #"{"id":"b"}"#]
      _ = try await put(["b"], member, ends: .code(0))
      expectReplayed(try await rig.order(nil, body: #"{"id":"b"}"#, path: "/v1/pages"), 201)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `a payload with another caller than the record is not put`() async throws {
    let route = """
      {name: accounts, match: {methods: [POST], path: /v1/accounts},
       caller: {parts: ['query:account', 'json:/user', 'header:X-Tenant']}}
      """.replacing("\n", with: " ")
    try await Rig.run(Configuration(firstRoutes: [route])) { rig in
      let body = #"{"user":"u"}"#
      let record = [
        "--route", "accounts", "--key", "a", "--host", "orders.example", "--caller", "query:account=1",
        "--caller",
        "json:/user=u", "--caller", "header:X-Tenant=t", "-H", "Content-Type: application/json",
      ]
      for (more, part) in [
        (["-d", body, "--query", "account=2"], "query:account"), (["-d", body], "query:account"),
        (["-d", #"{"user":"v"}"#, "--query", "account=1"], "json:/user"),
        (["-d", "{}", "--query", "account=1"], "json:/user"),
        (["-d", body, "--query", "account=1", "-H", "X-Tenant: s"], "header:x-tenant"),
      ] {
        let refused = try await rig.key(Self.put + record + more, ends: .code(1))
        #expect(refused.errors.contains("another caller than the record, at \(part):"), "\(refused.errors)")
      }
      try await rig.key(Self.put + record + ["-d", body, "--query", "account=%31", "-H", "X-Tenant: t"])
      expectReplayed(
        try await rig.order("a", body: body, path: "/v1/accounts?account=1", [("X-Tenant", "t")]), 201)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a record that exists is not put`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { request in Reply(201, gate: request.number == 2 ? gate : nil) }
      expectExecuted(try await rig.order("completed"))
      let running = try await RawClient(port: rig.semel.ports.proxy)
      try await running.send(Rig.orderText("running"))
      try await rig.backend.arrived(2)
      for (key, state) in [("completed", "completed"), ("running", "in_flight")] {
        let refused = try await rig.key(Self.put + Self.order + Rig.selection(key), ends: .code(1))
        #expect(refused.errors.contains("there is a record") && refused.errors.contains("it is \(state)"))
      }
      gate.open()
      expectExecuted(try await running.response())
      expectReplayed(try await rig.order("completed"), 201)
    }
  }

  @Test func `a free record is put with its own payload alone`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { _ in Reply(503) }
      _ = try await rig.order("a")
      let other = ["-H", "Content-Type: application/json", "-d", "{}"]
      let refused = try await rig.key(Self.put + other + Rig.selection("a"), ends: .code(1))
      #expect(refused.errors.contains("its payload is another"), "\(refused.errors)")
      try await rig.key(Self.put + Self.order + Rig.selection("a"))
      expectReplayed(try await rig.order("a"), 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a sealed store seals what was put`() async throws {
    let secrets = TemporaryDirectory()
    try "0123456789abcdef0123456789abcdef".write(
      toFile: secrets.file("seal"), atomically: true, encoding: .utf8)
    let members = ["encryption": "{secret_files: ['\(secrets.file("seal"))']}"]
    try await Rig.run(Configuration(storeMembers: members)) { rig in
      try await rig.key(Self.put + Self.order + Rig.selection("a"))
      expectReplayed(try await rig.order("a"), 201)
    }
  }

  /// Loses the outcomes of three orders and of one request of another route.
  private func lose(_ rig: Rig) async throws {
    rig.backend.on("/v1/orders") { _ in .unanswered }
    rig.backend.on("/other") { _ in .unanswered }
    for key in ["a", "b", "c"] {
      expectRefused(try await rig.order(key), 502, "outcome_unknown", retryable: false)
    }
    expectRefused(try await rig.order("d", path: "/other"), 502, "outcome_unknown", retryable: false)
  }

  private static let other = "{name: other, match: {path: /other}, caller: {parts: ['header:Authorization']}}"

  @Test(arguments: StoreKind.allCases)
  func `many unknown outcomes of a route are resolved, one audit entry each`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, firstRoutes: [Self.other])) { rig in
      try await lose(rig)
      let bulk = ["resolve", "--not-applied", "--route", "orders", "--older-than"]
      #expect(try await rig.key(bulk + ["1h", "--yes"]).output.contains("nothing to resolve"))
      // Nobody confirms.
      let refused = try await rig.key(bulk + ["0s"], ends: .code(1))
      #expect(refused.output.contains("3 unknown outcomes of route orders"), "\(refused.output)")
      #expect(refused.errors.contains("nothing was changed"))
      let done = try await rig.key(bulk + ["0s", "--yes"])
      #expect(done.output.contains("3 resolved"), "\(done.output)")
      let audited = try await rig.semel.process.lines(atLeast: 3) { $0.contains(#""action":"resolve""#) }
      #expect(audited == 3)
      rig.backend.on("/v1/orders") { _ in Reply(201) }
      expectExecuted(try await rig.order("a"))
      expectRefused(
        try await rig.order("d", path: "/other"), 409, "outcome_unknown", retryable: false)
    }
  }

  @Test func `of outcomes of different ages only the older ones are resolved`() async throws {
    try await Rig.run { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      for key in ["old-1", "old-2"] { #expect(try await rig.order(key).status == 502) }
      let oldest = { () async throws -> Double in
        let shown = try await rig.key(["show"] + Rig.selection("old-2")).output
        let line = try #require(shown.split(separator: "\n").first { $0.contains("unknown_for_seconds") })
        let digits = String(line.filter { $0.isNumber || $0 == "." })
        return try #require(Double(digits))
      }
      while try await oldest() < 8 { try await Task.sleep(for: .milliseconds(100)) }
      #expect(try await rig.order("new").status == 502)
      let bulk = ["resolve", "--not-applied", "--route", "orders", "--older-than", "7s", "--yes"]
      let done = try await rig.key(bulk).output
      #expect(done.contains("2 unknown outcomes of route orders") && done.contains("2 resolved"), "\(done)")
      for (key, state) in [("old-1", "released"), ("old-2", "released"), ("new", "unknown")] {
        let shown = try await rig.key(["show"] + Rig.selection(key)).output
        #expect(shown.contains(#""state" : "\#(state)""#), "\(shown)")
      }
    }
  }

  @Test func `one command resolves a thousand outcomes at most`() async throws {
    try await Rig.run(within: .seconds(300)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for part in 0..<13 {
          group.addTask { () async throws in
            for number in 0..<77 { #expect(try await rig.order("\(part)-\(number)").status == 502) }
          }
        }
        try await group.waitForAll()
      }
      let bulk = ["resolve", "--not-applied", "--route", "orders", "--older-than", "0s", "--yes"]
      // A write to the disk for each.
      let first = try await rig.key(bulk, within: .seconds(100)).output
      for line in [
        "1001 unknown outcomes of route orders", "this command resolves the first 1000\n", "1000 resolved",
      ] {
        #expect(first.contains(line), "\(line) in \(first)")
      }
      #expect(try await rig.key(bulk).output.contains("1 resolved"))
      #expect(try await rig.key(bulk).output.contains("nothing to resolve"))
    }
  }

  /// Starts the resolution of all unknown outcomes of the route `orders`, which reads its confirmation from a file.
  private func startBulk(_ rig: Rig, confirmedBy path: String) throws -> ManagedProcess {
    try ManagedProcess([
      "sh", "-c", "exec \"$@\" <\"$0\"", path, SemelProcess.binary, "key", "resolve", "--not-applied",
      "--older-than", "0s", "--route", "orders", "--admin", rig.adminURL,
    ])
  }

  @Test(arguments: StoreKind.allCases)
  func `of many, one that has run again since they were listed is left`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, upstream: ["settle": "0s"], route: ["on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      for key in ["a", "b"] {
        expectRefused(try await rig.order(key), 502, "outcome_unknown", retryable: true)
      }
      let directory = TemporaryDirectory()
      let path = directory.file("confirmation")
      #expect(mkfifo(path, 0o600) == 0)
      // Open for both, so that neither side's opening waits for the other's.
      let confirmation = open(path, O_RDWR)
      try #require(confirmation >= 0)
      defer { close(confirmation) }
      let bulk = try startBulk(rig, confirmedBy: path)
      try await bulk.line(containing: "type 2 to resolve")
      expectRefused(try await rig.order("a"), 502, "outcome_unknown", retryable: true)
      #expect(write(confirmation, "2\n", 2) == 2)
      #expect(try await bulk.exit() == .code(0), "\(bulk.errors)")
      #expect(bulk.output.contains("1 resolved, 1 skipped"), "\(bulk.output)")
      #expect(
        bulk.errors.contains("another attempt has ended unknown since the list was made"), "\(bulk.errors)")
      let left = try await rig.key(["show"] + Rig.selection("a")).output
      #expect(left.contains(#""state" : "unknown""#) && left.contains(#""attempt" : 2"#), "\(left)")
      let freed = try await rig.key(["show"] + Rig.selection("b")).output
      #expect(freed.contains(#""state" : "released""#), "\(freed)")
      withExtendedLifetime(directory) {}
    }
  }

  /// Removes the origins from the embedded store's records, as an earlier version has made them.
  private func removeOrigins(_ rig: Rig) async throws {
    try await Python.runInline(
      """
      import sqlite3, sys
      with sqlite3.connect(sys.argv[1]) as database: database.execute("UPDATE record SET origin = NULL")
      """, [try #require(rig.storePath)])
  }

  @Test func `outcomes whose records do not name their route are left`() async throws {
    try await Rig.run(Configuration(firstRoutes: [Self.other])) { rig in
      try await lose(rig)
      try await rig.semel.kill()
      try await removeOrigins(rig)
      try await rig.semel.start()
      let bulk = ["resolve", "--not-applied", "--older-than", "0s", "--yes"]
      let left = try await rig.key(bulk + ["--route", "orders"])
      #expect(left.output.contains("nothing to resolve"), "\(left.output)")
      #expect(left.errors.contains("4 more are left"), "\(left.errors)")
      let listed = try await rig.key(["list"]).output
      #expect(listed.contains(" not known "), "\(listed)")
      #expect(try await rig.key(bulk + ["--all-routes"]).output.contains("4 resolved"))
    }
  }
}
