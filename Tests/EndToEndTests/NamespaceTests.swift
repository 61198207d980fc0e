import TestSupport
import Testing

/// The configurations that a namespace remembers.
struct NamespaceTests {
  /// Starts the rig's process again with other members; its exit where it ends by itself.
  private func restart(
    _ rig: Rig, accepting acceptance: String = "", _ change: (inout Configuration) -> Void
  ) async throws {
    try await rig.semel.kill()
    var changed = rig.configuration
    change(&changed)
    try rig.semel.configure(rig.text(of: changed) + acceptance)
  }

  /// The verdict of `semel check --live` on the rig's configuration.
  private func checkLive(_ rig: Rig) async throws -> (exit: ManagedProcess.Exit, errors: String) {
    let process = try ManagedProcess(
      [SemelProcess.binary, "check", "--live", rig.semel.directory.file("semel.yaml")])
    return (try await process.exit(), process.errors)
  }

  @Test(arguments: StoreKind.allCases)
  func `a start that identifies requests differently needs allow_identity_change, once`(store: StoreKind)
    async throws
  {
    try await Rig.run(Configuration(store: store)) { rig in
      let first = try await rig.order("k")
      expectExecuted(first)
      try await restart(rig) { $0.route["caller"] = "{parts: [address]}" }
      let refused = try rig.semel.launch()
      #expect(try await refused.exit() == .code(78))
      let message = "routes[0].caller: is another than in orders before"
      #expect(refused.errors.contains(message), "\(refused.errors)")
      let acceptance = try Rig.acceptance(in: refused.errors)
      #expect(try Rig.acceptance(in: try await checkLive(rig).errors) == acceptance)

      // With the old one, in another name and with another retention, all is as it was.
      try rig.semel.configure(
        rig.text(of: rig.configuration).replacing("name: orders", with: "name: bought, retention: 1h"))
      try await rig.semel.start()
      expectReplayed(try await rig.order("k"), of: first)

      // The change is of another route's records now, and so another one.
      try await restart(rig, accepting: acceptance) { $0.route["caller"] = "{parts: [address]}" }
      let renamed = try rig.semel.launch()
      #expect(try await renamed.exit() == .code(78))
      let accepted = try Rig.acceptance(in: renamed.errors)
      try await restart(rig, accepting: accepted) { $0.route["caller"] = "{parts: [address]}" }
      try await rig.semel.start()
      expectExecuted(try await rig.order("k"))
      try await restart(rig) { $0.route["caller"] = "{parts: [address]}" }
      try await rig.semel.start()
      expectReplayed(try await rig.order("k"), 201)
      // It accepts no later change.
      try await restart(rig, accepting: accepted) { $0.route["caller"] = "{parts: ['header:X-User']}" }
      #expect(try await rig.semel.launch().exit() == .code(78))
    }
  }

  /// Starts with a configuration that is refused first. Returns the file with the line that accepts it.
  private func startAccepted(_ rig: Rig, _ configuration: Configuration) async throws -> String {
    try await rig.semel.kill()
    try rig.semel.configure(rig.text(of: configuration))
    let refused = try rig.semel.launch()
    #expect(try await refused.exit() == .code(78))
    let text = rig.text(of: configuration) + (try Rig.acceptance(in: refused.errors))
    try rig.semel.configure(text)
    try await rig.semel.start()
    return text
  }

  @Test(arguments: StoreKind.allCases)
  func `a line that stays in a file does not accept its change again after the way back`(store: StoreKind)
    async throws
  {
    try await Rig.run(Configuration(store: store)) { rig in
      let first = try await rig.order("k")
      var changed = rig.configuration
      changed.route["caller"] = "{parts: [address]}"
      let forth = try await startAccepted(rig, changed)
      expectExecuted(try await rig.order("k"))
      let back = try await startAccepted(rig, rig.configuration)
      expectReplayed(try await rig.order("k"), of: first)
      expectExecuted(try await rig.order("later"))

      try await rig.semel.kill()
      try rig.semel.configure(forth)
      #expect(try await rig.semel.launch().exit() == .code(78))
      try rig.semel.configure(back)
      try await rig.semel.start()
      expectReplayed(try await rig.order("later"), 201)
      try await rig.reload(forth)
      #expect(try await rig.semel.admin.send("GET", "/readyz").text.contains("reload refused"))
      #expect(rig.backend.runs(of: "later") == 1)
    }
  }

  @Test(arguments: StoreKind.allCases, ["listener", "admin"])
  func `a start that finds an address in use enters no identity`(store: StoreKind, taken: String) async throws
  {
    try await Rig.run(Configuration(store: store)) { rig in
      let first = try await rig.order("k")
      expectExecuted(first)
      try await rig.semel.kill()
      var changed = rig.configuration
      changed.route["caller"] = "{parts: [address]}"
      try rig.semel.configure(rig.text(of: changed))
      let refused = try rig.semel.launch()
      #expect(try await refused.exit() == .code(78))
      let acceptance = try Rig.acceptance(in: refused.errors)
      let port = taken == "admin" ? rig.semel.ports.admin : rig.semel.ports.proxy
      try rig.semel.configure(
        rig.text(of: changed).replacing("127.0.0.1:\(port)", with: "127.0.0.1:\(rig.backend.port)")
          + acceptance)
      let failed = try rig.semel.launch()
      #expect(try await failed.exit() == .code(1))
      #expect(failed.errors.contains("cannot listen on 127.0.0.1:\(rig.backend.port)"), "\(failed.errors)")
      #expect(failed.errors.split(separator: "\n").count == 1, "\(failed.errors)")
      let entries = failed.output.split(separator: "\n").filter {
        $0.contains(#""level":"error""#) || $0.contains(#""level":"critical""#)
      }
      #expect(entries.count == 1, "\(failed.output)")

      try rig.semel.configure(rig.text(of: rig.configuration))
      try await rig.semel.start()
      expectReplayed(try await rig.order("k"), of: first)
    }
  }

  @Test func `a namespace that was renamed is warned of, and another configuration's new one is not`()
    async throws
  {
    try await Rig.run(Configuration(store: .redis)) { rig in
      expectExecuted(try await rig.order("k"))
      let warning = "IS NEW, AND THIS CONFIGURATION HAS USED ANOTHER ONE"
      #expect(!rig.semel.process.output.contains(warning))
      try await restart(rig) {
        $0.storeMembers["namespace"] = "second"
        $0.route["caller"] = "{parts: [address]}"
      }
      try await rig.semel.start()
      #expect(!rig.semel.process.output.contains(warning))
      try await restart(rig) { $0.storeMembers["namespace"] = "renamed" }
      try await rig.semel.start()
      let line = try await rig.semel.process.line(containing: "THE NAMESPACE renamed \(warning)")
      #expect(line.contains(#""level":"error""#) && line.contains(#""namespaces":"semel""#), "\(line)")
      try await restart(rig) { $0.storeMembers["namespace"] = "renamed" }
      try await rig.semel.start()
      #expect(!rig.semel.process.output.contains(warning))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `renaming the upstream of the first configuration is refused, at a start and by check`(
    store: StoreKind
  )
    async throws
  {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("k"))
      let same = try await checkLive(rig)
      #expect(same.exit == .code(0), "\(same.errors)")
      try await restart(rig) {
        $0.top["upstreams"] = "{shop: {url: 'http://127.0.0.1:\(rig.backend.port)'}}"
        $0.route["match"] = "{path: '/v1/orders'}"
      }
      let check = try await checkLive(rig)
      #expect(
        check.exit == .code(78) && check.errors.contains("semel run refuses to start"), "\(check.errors)")
      let refused = try rig.semel.launch()
      #expect(try await refused.exit() == .code(78))
      #expect(refused.errors.contains("routes[0].match: no route has the match"), "\(refused.errors)")
      #expect(rig.backend.runs(of: "k") == 1)
    }
  }

  @Test func `a route that is switched off by a restart is noticed`() async throws {
    try await Rig.run { rig in
      try await restart(rig) {
        $0.firstRoutes = ["{name: off, match: {path: '/v1/orders'}, idempotency: off}"]
      }
      let refused = try rig.semel.launch()
      #expect(try await refused.exit() == .code(78))
      #expect(refused.errors.contains("routes[0].match: may take requests that orders"), "\(refused.errors)")
    }
  }

  @Test func `a start that cannot read a locked file ends`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k"))
      try await restart(rig) { $0.route["caller"] = "{parts: [address]}" }
      let holder = try await rig.lockStore()
      let stopped = try rig.semel.launch()
      #expect(try await stopped.exit() == .code(1))
      #expect(stopped.errors.contains("start Semel again once the store can be used"), "\(stopped.errors)")
      try await holder.kill()
      #expect(try await rig.semel.launch().exit() == .code(78))
    }
  }

  @Test(arguments: ["closed", "open"])
  func `an identity that is found to differ late serves no protected request`(_ mode: String) async throws {
    try await Rig.run(Configuration(store: .redis, isAppendOnly: true)) { rig in
      expectExecuted(try await rig.order("k"))
      try await restart(rig) {
        $0.route["caller"] = "{parts: [address]}"
        $0.route["on_store_failure"] = mode
      }
      rig.redis?.stop()
      try rig.semel.launch()
      try await rig.semel.page("/readyz", becomes: 503)
      try await rig.redis?.start()
      try await rig.semel.process.line(containing: "no protected request is served")
      expectRefused(try await rig.order("k"), 503, "store_unavailable", retryable: true)
      #expect(try await rig.order(nil, path: "/open").status == 201)
      #expect(await rig.semel.status(of: "/readyz") == 503)
      try await rig.semel.counter("semel_store_connections_up", becomes: 0)
      #expect(rig.backend.runs(of: "k") == 1)
    }
  }

  @Test(arguments: [true, false])
  func `a node that was refused late is repaired by a reload`(goesBack: Bool) async throws {
    try await Rig.run(Configuration(store: .redis, isAppendOnly: true)) { rig in
      let first = try await rig.order("k")
      var wrong = rig.configuration
      wrong.route["caller"] = "{parts: [address]}"
      try await restart(rig) { $0 = wrong }
      rig.redis?.stop()
      try rig.semel.launch()
      try await rig.semel.page("/readyz", becomes: 503)
      try await rig.redis?.start()
      let refusal = try await rig.semel.process.line(containing: "in the file accepts this very change")
      try await rig.semel.process.line(containing: "no protected request is served")

      let acceptance = try Rig.acceptance(in: refusal)
      try await rig.reload(rig.text(of: goesBack ? rig.configuration : wrong) + (goesBack ? "" : acceptance))
      try await rig.semel.page("/readyz", becomes: 200)
      if goesBack {
        expectReplayed(try await rig.order("k"), of: first)
      } else {
        expectExecuted(try await rig.order("k"))
      }
      #expect(rig.backend.runs(of: "k") == (goesBack ? 1 : 2))
      try await rig.semel.counter("semel_store_connections_up", isAtLeast: 1)
    }
  }

  @Test func `a reload without the store is compared with what was in force`() async throws {
    let configuration = Configuration(store: .redis, top: ["workers": "1"], isAppendOnly: true)
    try await Rig.run(configuration) { rig in
      let first = try await rig.order("k")
      var changed = rig.configuration
      changed.route["caller"] = "{parts: [address]}"
      try rig.semel.configure(rig.text(of: changed))
      let acceptance = try Rig.acceptance(in: try await checkLive(rig).errors)
      rig.redis?.stop()
      try await rig.reload(rig.text(of: changed) + acceptance)
      let page = try await rig.semel.admin.send("GET", "/readyz").text
      #expect(page.contains("store: cannot be reached now") && page.contains("reload refused"), "\(page)")
      try await rig.reload { $0.route["retention"] = "3h" }
      #expect(try await !rig.semel.admin.send("GET", "/readyz").text.contains("reload refused"))
      try await rig.redis?.start()
      expectReplayed(try await rig.order("k") { $0.problem == nil }, of: first)
      try await rig.reload(rig.text(of: changed) + acceptance)
      expectExecuted(try await rig.order("k"))
    }
  }

  @Test func `a store that is reached late is compared, and served from then on`() async throws {
    try await Rig.run(Configuration(store: .redis, isAppendOnly: true)) { rig in
      let first = try await rig.order("k")
      try await rig.semel.kill()
      rig.redis?.stop()
      try rig.semel.launch()
      try await rig.semel.page("/readyz", becomes: 503)
      try await rig.redis?.start()
      try await rig.semel.page("/readyz", becomes: 200)
      expectReplayed(try await rig.order("k") { $0.problem == nil }, of: first)
    }
  }

  @Test func `another service in the namespace is warned of on both nodes`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      #expect(try await rig.semel.counter("semel_namespace_conflicts") == 0)
      let other = OrdersBackend()
      try await other.start()
      let second = try await rig.secondNode(before: other.port)
      for node in [second, rig.semel] {
        let line = try await node.process.line(containing: "ANOTHER CONFIGURATION USES THE NAMESPACE semel")
        #expect(line.contains(#""level":"error""#))
        #expect(line.contains("127.0.0.1:\(other.port)") && line.contains("127.0.0.1:\(rig.backend.port)"))
        #expect(line.contains("store.namespace"))
        try await node.counter("semel_namespace_conflicts", isAtLeast: 1)
      }
      try await second.kill()
      try await other.stop()
    }
  }

  @Test func `another configuration that stays in the namespace is compared once`() async throws {
    // Every command is an entry of the slow log.
    let arguments = ["--slowlog-log-slower-than", "0", "--slowlog-max-len", "100000"]
    let configuration = Configuration(
      store: .redis, top: ["log": "{level: debug, format: json}"], redisArguments: arguments)
    try await Rig.run(configuration) { rig in
      let redis = try #require(rig.redis)
      let other = OrdersBackend()
      try await other.start()
      let second = try await rig.secondNode(before: other.port)
      try await rig.semel.process.line(containing: "ANOTHER CONFIGURATION USES THE NAMESPACE semel")
      try await second.kill()
      let (comparisons, reads) = (Self.comparisons(by: rig.semel), try Self.reads(of: redis))
      #expect(comparisons > 0)
      // The node reads the configurations every five seconds.
      while try Self.reads(of: redis) < reads + 2 { try await Task.sleep(for: .milliseconds(200)) }
      #expect(Self.comparisons(by: rig.semel) == comparisons)
      try await other.stop()
    }
  }

  /// The number of comparisons of configurations that a node has logged.
  private static func comparisons(by node: SemelProcess) -> Int {
    node.process.output.split(separator: "\n").count {
      $0.contains("the configuration was compared with those that its namespace remembers")
    }
  }

  /// The number of commands that have read the configurations of a namespace from Redis.
  private static func reads(of redis: RedisServer) throws -> Int {
    let entries = try redis.command(["SLOWLOG", "GET", "100000"]) ?? ""
    return entries.split(separator: "\n").count { $0 == "configurations" }
  }

  @Test func `nodes that identify requests differently during a rollout warn of it`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      let ports = SemelProcess.Ports()
      var changed = rig.configuration
      changed.route["caller"] = "{parts: [address]}"
      try rig.semel.configure(rig.text(of: changed))
      let acceptance = try Rig.acceptance(in: try await checkLive(rig).errors)
      let text = changed.text(ports: ports, backend: rig.backend.port, storePath: "", redis: rig.redis)
      let second = try await SemelProcess(ports: ports, configuration: text + acceptance)
      try await second.process.line(containing: "as allow_identity_change permits")
      try await rig.semel.process.line(containing: "another node identifies requests in another way")
      try await second.kill()
    }
  }
}
