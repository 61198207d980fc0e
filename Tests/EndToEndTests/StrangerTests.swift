import TestSupport
import Testing

/// Connections that cost their client next to nothing, in a process with the settings of the Helm chart, whose container
/// has 512 MiB.
struct StrangerTests {
  /// One kind of `strangers.py`.
  struct Attack: Sendable, CustomTestStringConvertible {
    let kind: String
    let connections: Int
    let addresses: Int
    /// The growth of the process, in MiB: some 60 KiB for each connection of a debug build, and the share of its client.
    let maxGrowth: Int

    var testDescription: String { kind }

    func start(against rig: Rig) async throws -> ManagedProcess {
      let strangers = try Python.startPlain(
        "strangers", ["\(rig.semel.ports.proxy)", kind, "\(connections)", "\(addresses)"])
      try await strangers.line(containing: "held ", within: .seconds(120))
      return strangers
    }
  }

  private static let limits = "body_memory: 192MiB, max_connections: 2000"
  /// The time-outs of what waits: in these tests it stays.
  private static let patience = "header_timeout: 5m, body_timeout: 5m, write_timeout: 5m"

  private static func configuration(_ limits: String) -> Configuration {
    Configuration(
      top: ["limits": "{\(limits)}", "log": "{access: false}"], storeMembers: ["local_cache": "64MiB"])
  }

  /// The number of these orders that are executed. Their bodies come in packets of their own.
  private static func executed(_ count: Int, _ rig: Rig) async throws -> Int {
    var executed = 0
    for number in 0..<count {
      let client = try await RawClient(port: rig.semel.ports.proxy)
      let order = Array(Rig.orderText("honest-\(number)").utf8)
      try await client.send(order.dropLast(10))
      try await client.send(order.suffix(10))
      if try await client.response().status == 201 { executed += 1 }
      try await client.close()
    }
    return executed
  }

  /// Waits until the strangers' bytes have been read, which takes a debug build many seconds.
  private static func awaitTurn(_ rig: Rig) async throws {
    let deadline = ContinuousClock.now + .seconds(90)
    while (try? await rig.order("patient"))?.status != 201 {
      guard ContinuousClock.now < deadline else { throw TestFailure("no order is executed") }
    }
  }

  @Test(arguments: [
    Attack(kind: "unread", connections: 120, addresses: 1, maxGrowth: 45),
    Attack(kind: "bodiless", connections: 20, addresses: 1, maxGrowth: 50),
    Attack(kind: "block", connections: 1000, addresses: 1, maxGrowth: 100),
    Attack(kind: "head", connections: 1000, addresses: 1, maxGrowth: 50),
  ])
  func `what costs a stranger little takes little memory, and others are served`(attack: Attack) async throws
  {
    // Fewer requests in flight than by default: a debug build takes milliseconds for each of the strangers'.
    let configuration = Self.configuration("\(Self.limits), \(Self.patience), max_in_flight: 1000")
    try await Rig.run(configuration, within: .seconds(200), slots: Rig.allSlots) { rig in
      expectExecuted(try await rig.order("first"))
      let before = try rig.semel.memory("VmRSS")
      let strangers = try await attack.start(against: rig)
      try await Self.awaitTurn(rig)
      #expect(try await Self.executed(40, rig) == 40)
      let growth = (try rig.semel.memory("VmRSS") - before) >> 10
      #expect(growth < attack.maxGrowth, "\(growth) MiB")
      try await strangers.kill()
      try await rig.semel.counter("semel_body_bytes", becomes: 0)
    }
  }

  @Test(.enabled(if: SemelProcess.isRelease, "a debug build takes too long for eighty thousand requests"))
  func `all of them at once, from forty addresses, do not exceed a container's memory`() async throws {
    try await Rig.run(Self.configuration(Self.limits), within: .seconds(300), slots: Rig.allSlots) { rig in
      expectExecuted(try await rig.order("first"))
      var strangers: [ManagedProcess] = []
      for (kind, count) in [("unread", 690), ("bodiless", 100), ("block", 500), ("head", 500)] {
        let attack = Attack(kind: kind, connections: count, addresses: 40, maxGrowth: 0)
        strangers.append(try await attack.start(against: rig))
      }
      let executed = try await Self.executed(100, rig)
      #expect(executed >= 95, "\(executed) of 100")
      let peak = try rig.semel.memory("VmHWM") >> 10
      #expect(peak < 512, "\(peak) MiB")
      for process in strangers { try await process.kill() }
    }
  }
}
