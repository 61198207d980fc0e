import Glibc
import TestSupport
import Testing

/// Requests while the store is away, and when it is back.
struct StoreFailureTests {
  @Test func `nothing runs while the store is down, and requests run when it is back`() async throws {
    try await Rig.run(Configuration(store: .redis, isAppendOnly: true)) { rig in
      let first = try await rig.order("before")
      expectExecuted(first)
      rig.redis?.kill()
      let refused = try await rig.order("k")
      expectRefused(refused, 503, "store_unavailable", retryable: true)
      expectRetryAfter(refused)
      #expect(try await rig.order(nil, path: "/open").status == 201)
      #expect(await rig.semel.status(of: "/livez") == 200)
      #expect(rig.backend.runs(of: "k") == 0)

      try await rig.redis?.start()
      expectExecuted(try await rig.order("k") { $0.problem?.code != "store_unavailable" })
      // Each event loop has a connection of its own, and another one may take this request.
      let replay = try await rig.order("before") { $0.problem?.code != "store_unavailable" }
      expectReplayed(replay, of: first)
      #expect(rig.backend.runs(of: "k") == 1)
    }
  }

  @Test func `a route may run unprotected while the store is down`() async throws {
    try await Rig.run(Configuration(store: .redis, route: ["on_store_failure": "open"])) { rig in
      expectExecuted(try await rig.order("before"))
      rig.redis?.kill()
      for _ in 0..<2 {
        let open = try await rig.order("k")
        #expect(open.status == 201)
        #expect(open.idempotencyStatus == "unprotected")
      }
      #expect(rig.backend.runs(of: "k") == 2)
      let ids = rig.backend.requests.suffix(2).map(\.requestID)
      #expect(ids[0]?.count == 43 && ids[0] == ids[1], "\(ids)")
      #expect(rig.backend.requests.suffix(2).allSatisfy { $0.attempt == nil })
      try await rig.redis?.start()
      // An event loop that has not reconnected yet refuses, once another one has heard of Redis.
      expectExecuted(
        try await rig.order("k") { $0.status == 201 && $0.idempotencyStatus != "unprotected" })
      // An event loop that has not reconnected yet refuses what this process knows.
      expectReplayed(try await rig.order("k") { $0.problem?.code != "store_unavailable" }, 201)
    }
  }

  @Test func `a delivery that is known to be a duplicate never runs unprotected`() async throws {
    let configuration = Configuration(
      store: .redis, storeMembers: ["timeout": "1s"], route: ["on_store_failure": "open", "lease": "4s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      async let second = rig.order("k")
      try await rig.semel.counter("semel_waiting_requests", becomes: 1)
      rig.redis?.kill()
      // It looks at the record again when the lease must have ended, at the latest.
      expectRefused(try await second, 503, "store_unavailable", retryable: true)
      gate.open()
      #expect(try await first.text == "once")
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a process that stood still keeps its store's connection`() async throws {
    try await Rig.run(Configuration(store: .redis, storeMembers: ["timeout": "2s"])) { rig in
      expectExecuted(try await rig.order("before"))
      for round in 0..<3 {
        try await withThrowingTaskGroup(of: ReceivedResponse.self) { group in
          for number in 0..<24 { group.addTask { try await rig.order("\(round)-\(number)") } }
          rig.semel.process.signal(SIGSTOP)
          // Longer than a command of the store may take.
          try await Task.sleep(for: .milliseconds(2300))
          rig.semel.process.signal(SIGCONT)
          for try await response in group { expectExecuted(response) }
        }
      }
      #expect(!rig.semel.process.output.contains("no connection to Redis"))
      try await rig.semel.counter("semel_store_reconnects_total", becomes: 0)
    }
  }

  @Test func `a store that was restarted empty records outcomes from then on`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      try await rig.redis?.restart()
      gate.open()
      // The record is made anew by its owner; until then the response waits or is given, and never runs twice.
      let response = try await first
      #expect(response.text == "once")
      let replay = try await rig.order("k") { $0.status == 201 }
      #expect(replay.text == "once")
      #expect(rig.backend.requests.count == 1)
    }
  }

  /// No ghost claims: what the store runs after Semel gave up claims nothing.
  @Test func `a claim without a reply of a frozen store delays nobody`() async throws {
    let configuration = Configuration(
      store: .redis, storeMembers: ["timeout": "1s"], route: ["lease": "60s", "wait_timeout": "1s"])
    try await Rig.run(configuration) { rig in
      for round in 1...5 {
        rig.redis?.freeze()
        expectRefused(try await rig.order("k\(round)"), 503, "store_unavailable", retryable: true)
        rig.redis?.thaw()
        // Far below the lease: nothing has to lapse. Reconnecting may take a moment.
        let response = try await rig.order("k\(round)") {
          $0.problem?.code != "store_unavailable"
        }
        expectExecuted(response)
        #expect(rig.backend.runs(of: "k\(round)") == 1)
      }
      #expect(rig.backend.requests.allSatisfy { $0.attempt == "1" })
    }
  }

  /// As above, when nobody is left to give the claim back: only its deadline keeps it from holding the key.
  @Test func `a claim that a frozen store runs after Semel was killed claims nothing`() async throws {
    let configuration = Configuration(
      store: .redis, storeMembers: ["timeout": "1s"], route: ["lease": "60s", "wait_timeout": "1s"])
    try await Rig.run(configuration) { rig in
      for round in 1...3 {
        rig.redis?.freeze()
        expectRefused(try await rig.order("k\(round)"), 503, "store_unavailable", retryable: true)
        try await rig.semel.kill()
        rig.redis?.thaw()
        try await rig.semel.start()
        expectExecuted(try await rig.order("k\(round)") { $0.problem?.code != "store_unavailable" })
        #expect(rig.backend.runs(of: "k\(round)") == 1)
      }
      #expect(rig.backend.requests.allSatisfy { $0.attempt == "1" })
    }
  }

  @Test func `a lease that cannot be renewed is logged with the store's failure`() async throws {
    let configuration = Configuration(store: .redis, storeMembers: ["timeout": "1s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      rig.redis?.freeze()
      let line = try await rig.semel.process.line(containing: "a lease lapsed while its request was running")
      for part in [#""cause":"renewals_failed""#, #""error":"#, #""route":"orders""#, #""attempt":1,"#] {
        #expect(line.contains(part), "\(part) in \(line)")
      }
      rig.redis?.thaw()
      gate.open()
      #expect(try await first.status == 201)
    }
  }

  @Test func `a store that freezes during a completion does not cause a second run`() async throws {
    let configuration = Configuration(store: .redis, storeMembers: ["timeout": "1s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      rig.redis?.freeze()
      gate.open()
      // The client gets its response, although storing it is still being tried.
      let response = try await first
      #expect(response.status == 201)
      #expect(response.text == "once")
      rig.redis?.thaw()
      let replay = try await rig.order("k") { $0.status == 201 }
      expectReplayed(replay, of: response)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `with on_unknown: retry, a response that cannot be stored is withheld`() async throws {
    let configuration = Configuration(
      store: .redis, upstream: ["settle": "1s"], storeMembers: ["timeout": "1s"],
      route: ["on_unknown": "retry", "lease": "4s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      rig.redis?.kill()
      gate.open()
      expectRefused(try await first, 502, "outcome_unknown", retryable: true)
    }
  }

  @Test(arguments: [false, true])
  func `no retry runs because a response could not be stored`(isElsewhere: Bool) async throws {
    let configuration = Configuration(
      store: .redis, upstream: ["settle": "1s"], route: ["on_unknown": "retry", "lease": "4s"])
    try await Rig.run(configuration) { rig in
      let other = try await rig.secondNode()
      let node = isElsewhere ? other : rig.semel
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(201, body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      try rig.redis?.command(["CONFIG", "SET", "maxmemory", "1"])
      gate.open()
      expectRefused(try await first, 502, "outcome_unknown", retryable: true)
      // Past the lease and `settle`, the record may be taken over.
      _ = try await Rig.repeated { response in
        let age = response.text.firstMatch(of: /"unknown_for_seconds" ?: ?([0-9.]+)/)?.output.1
        return age.flatMap { Double($0) } ?? 0 > 1.2
      } _: {
        try await rig.semel.admin.send("GET", "/v1/records?state=unknown")
      }
      #expect(try await rig.order("k", at: node).status != 201)
      try rig.redis?.command(["CONFIG", "SET", "maxmemory", "0"])
      expectReplayed(try await rig.order("k", at: node) { $0.status == 201 }, 201)
      #expect(rig.backend.runs(of: "k") == 1)
      try await other.kill()
    }
  }

  @Test func `a store that refuses the password is down`() async throws {
    let arguments = ["--requirepass", "secret"]
    for user in ["", ":wrong@", "default:wrong@"] {
      let configuration = Configuration(store: .redis, redisArguments: arguments, redisUser: user)
      try await Rig.run(configuration, becomesReady: false) { rig in
        expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
        #expect(rig.backend.requests.isEmpty)
      }
    }
    for user in [":secret@", "default:secret@"] {
      let configuration = Configuration(store: .redis, redisArguments: arguments, redisUser: user)
      try await Rig.run(configuration) { rig in expectExecuted(try await rig.order("k")) }
    }
  }
}
