import TestSupport
import Testing

/// The real binary between a client and a backend of the test's own, on a real store.
struct Rig: Sendable {
  let configuration: Configuration
  let backend: OrdersBackend
  let redis: RedisServer?
  let semel: SemelProcess
  private let directory: TemporaryDirectory

  /// The path of the embedded store; `nil` on Redis.
  var storePath: String? { redis == nil ? directory.file("semel.db") : nil }

  /// The maximum number of rigs at once: each is up to three processes, and most of the time they wait.
  private static let slots = Watched(allSlots)
  /// The turn of a test that loads the machine: it runs alone, so that it causes no time-out of another.
  static let allSlots = 10
  /// Whether the test has its slots already.
  @TaskLocal private static var holdsSlots = false

  /// Starts all parts, runs `body`, and ends them whatever it did.
  ///
  /// - Parameters:
  ///   - becomesReady: false where its store does not let it.
  ///   - backendIsUp: false leaves starting the backend to the test.
  ///   - span: how long `body` may take.
  ///   - slots: how many of those that run at once it counts for.
  static func run(
    _ configuration: Configuration = Configuration(), becomesReady: Bool = true, backendIsUp: Bool = true,
    within span: Duration = .seconds(120), slots: Int = 1,
    _ body: @escaping @Sendable (Rig) async throws -> Void
  ) async throws {
    try await withSlots(slots) {
      let rig = try await Rig(configuration, becomesReady: becomesReady, backendIsUp: backendIsUp)
      let outcome: Result<Void, any Error>
      do {
        outcome = .success(try await withDeadline(span) { try await body(rig) })
      } catch {
        // A test that is skipped has been cancelled.
        if !Task.isCancelled {
          Issue.record(
            "what semel said:\n\(rig.semel.process.output.suffix(4000))\(rig.semel.process.errors.suffix(4000))"
          )
        }
        outcome = .failure(error)
      }
      try? await rig.semel.kill()
      try? await rig.backend.stop()
      try outcome.get()
    }
  }

  /// Runs `body` when no more than a few other tests have processes running.
  static func withSlots(_ count: Int = 1, _ body: () async throws -> Void) async throws {
    guard !holdsSlots else { return try await body() }
    _ = try await slots.until("a free slot", within: .seconds(3600)) { free -> Bool? in
      guard free >= count else { return nil }
      free -= count
      return true
    }
    defer { slots.withValue { $0 += count } }
    try await $holdsSlots.withValue(true, operation: body)
  }

  private init(_ configuration: Configuration, becomesReady: Bool, backendIsUp: Bool) async throws {
    self.configuration = configuration
    directory = TemporaryDirectory()
    backend = OrdersBackend()
    redis =
      if configuration.store == .redis {
        try await RedisServer(arguments: configuration.redisArguments, appendOnly: configuration.isAppendOnly)
      } else {
        nil
      }
    if backendIsUp { try await backend.start() }
    let ports = SemelProcess.Ports()
    semel = try await SemelProcess(
      ports: ports,
      configuration: configuration.text(
        ports: ports, backend: backend.port, storePath: directory.file("semel.db"), redis: redis),
      waitsUntilReady: becomesReady)
  }

  /// Reloads with other members; ports and store stay.
  func reload(_ change: (inout Configuration) -> Void) async throws {
    var changed = configuration
    change(&changed)
    try await reload(text(of: changed))
  }

  func reload(_ text: String) async throws { try await semel.reload(text) }

  /// Reloads a configuration that identifies requests in another way: the refusal names the digest that accepts it.
  func reloadAccepted(_ configuration: Configuration) async throws {
    try await reload(text(of: configuration))
    let reasons = try await semel.admin.send("GET", "/readyz").text
    try await reload(text(of: configuration) + Self.acceptance(in: reasons))
  }

  /// The line of a file by which a refusal's text accepts the change.
  static func acceptance(in text: String) throws -> String {
    let found = try #require(text.firstMatch(of: #/allow_identity_change: [a-p]{10}/#), "\(text)")
    return found.output + "\n"
  }

  /// A configuration as this rig's process reads it.
  func text(of configuration: Configuration) -> String {
    configuration.text(
      ports: semel.ports, backend: backend.port, storePath: directory.file("semel.db"), redis: redis)
  }

  /// Another node on the same Redis and the same backend, or one of its own.
  func secondNode(before other: Int? = nil) async throws -> SemelProcess {
    let ports = SemelProcess.Ports()
    var configuration = configuration
    if let other { configuration.upstream["url"] = "'http://127.0.0.1:\(other)'" }
    return try await SemelProcess(
      ports: ports,
      configuration: configuration.text(ports: ports, backend: backend.port, storePath: "", redis: redis))
  }

  private static func withDeadline(_ span: Duration, _ body: @escaping @Sendable () async throws -> Void)
    async throws
  {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await Task.sleep(for: span)
        throw TestFailure("the test took longer than \(span)")
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }
}

extension Rig {
  /// A process that holds the embedded store's file locked until it is killed.
  func lockStore() async throws -> ManagedProcess {
    let holder = try Python.startInline(
      """
      import sqlite3, sys, time
      database = sqlite3.connect(sys.argv[1], isolation_level=None)
      database.execute("begin exclusive")
      print("locked")
      time.sleep(100)
      """, [try #require(storePath)])
    try await holder.line(containing: "locked")
    return holder
  }
}
