import Idempotency
import NIOCore
import Platform
import Store
import Synchronization
import TestSupport
import Testing

/// Nodes that redirect as real ones seldom do.
@Suite(.timeLimit(.minutes(1)))
struct ClusterScriptTests {
  @Test func `a thousand moved keys are sent to their node once each, and the map is read once`() async throws
  {
    let target = try ScriptedNode()
    let source = try ScriptedNode()
    source.script { ScriptedNode.moved($0, to: target.port) }
    // The map knows the source alone until the thousand are on their way.
    let isMoved = Mutex(false)
    let readings = Mutex(0)
    let slots: @Sendable () -> String = {
      guard isMoved.withLock({ $0 }) else { return ScriptedNode.slots(source.port) }
      readings.withLock { $0 += 1 }
      return ScriptedNode.slots(target.port)
    }
    source.map(slots)
    target.map(slots)
    // On a busy machine the thousand take longer than a command usually may, after which it is repeated.
    try await RedisNode.run(.on([source.port], timeout: .seconds(60))) { node in
      // The connection alone counts as usable before its map is here.
      try await until("the map is read") { node.status == .serving }
      let granted = Watched(0)
      // In one turn of the loop, so that all of them are on their way before the first reply.
      node.store.context.loop.execute {
        isMoved.withLock { $0 = true }
        for _ in 0..<1000 {
          node.store.store.startClaim(Samples.request()) { reply in
            if case .success(.granted) = reply { granted.withValue { $0 += 1 } }
          }
        }
      }
      try await granted.until("all grants", within: .seconds(50)) { $0 == 1000 ? $0 : nil }
      let keys = { (node: ScriptedNode) in node.recordCommands.map { $0[3] } }
      #expect(keys(source).count == 1000 && Set(keys(source)).count == 1000)
      #expect(keys(target).count == 1000 && Set(keys(target)) == Set(keys(source)))
      #expect(readings.withLock { $0 } == 1)
    }
  }

  @Test func `a cycle of redirections ends in an error within the time-out`() async throws {
    let (one, other) = (try ScriptedNode(), try ScriptedNode())
    one.script { ScriptedNode.moved($0, to: other.port) }
    other.script { ScriptedNode.moved($0, to: one.port) }
    for node in [one, other] { node.map { ScriptedNode.slots(one.port) } }
    let timeout = Milliseconds.seconds(20)
    try await RedisNode.run(.on([one.port], timeout: timeout)) { node in
      try await until("the map is read") { node.status == .serving }
      let start = BootInstant.now
      let error = await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      #expect(BootInstant.now - start < timeout)
      guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(reason.contains("point to each other"), "\(reason)")
      // Not until the time-out, and with a copy for each redirection that is followed.
      #expect(one.recordCommands.count + other.recordCommands.count == 8)
    }
  }

  /// All masters may be replaced while a node stands still or is cut off.
  @Test func `once no known master is reached, a node of the settings names the present ones`() async throws {
    let (former, successor) = (try ScriptedNode(), try ScriptedNode())
    for node in [former, successor] { node.map { ScriptedNode.slots(former.port) } }
    try await RedisNode.run(.on([former.port, successor.port], timeout: .seconds(30))) { node in
      try await until("the master alone is connected") {
        node.status == .serving && node.store.store.counters.usable == 1
      }
      for node in [former, successor] { node.map { ScriptedNode.slots(successor.port) } }
      former.leave()
      _ = try await node.store.granted(Samples.request())
      #expect(!successor.recordCommands.isEmpty)
    }
  }

  @Test func `ASK is followed with ASKING, and the map stays`() async throws {
    let (source, target) = (try ScriptedNode(), try ScriptedNode())
    source.script { _ in "-ASK 7 127.0.0.1:\(target.port)\r\n" }
    for node in [source, target] { node.map { ScriptedNode.slots(source.port) } }
    try await RedisNode.run(.on([source.port], timeout: .seconds(30))) { node in
      try await withThrowingTaskGroup(of: Claim.self) { group in
        for _ in 0..<50 { group.addTask { try await node.store.granted(Samples.request()) } }
        for try await claim in group { #expect(claim.attempt == 1) }
      }
      #expect(source.recordCommands.count == 50)
      #expect(target.recordCommands.count == 50 && target.count(of: "ASKING") == 50)
      // Back to back on one connection, though the commands of others are on it, too.
      for commands in target.connections {
        for (index, words) in commands.enumerated() where ScriptedNode.isOfRecord(words) {
          #expect(index > 0 && commands[index - 1] == ["ASKING"])
        }
      }
      #expect(source.count(of: "CLUSTER") == 1 && target.count(of: "CLUSTER") == 0)
    }
  }

  @Test func `a connection that dies after ASKING leaves no second owner`() async throws {
    let (source, target) = (try ScriptedNode(), try ScriptedNode())
    source.script { _ in "-ASK 7 127.0.0.1:\(target.port)\r\n" }
    let copies = Mutex(0)
    target.script { _ in
      copies.withLock { count in
        count += 1
        return count == 1 ? "" : ScriptedNode.time()
      }
    }
    for node in [source, target] { node.map { ScriptedNode.slots(source.port) } }
    try await RedisNode.run(.on([source.port], timeout: .seconds(30))) { node in
      let request = Samples.request()
      let claim = try await node.store.granted(request)
      #expect(claim.owner == request.owner)
      // The lost copy may still be run until then.
      #expect(claim.copiedUntil != nil)
      let scripts = target.commands.filter { $0[0] == "EVALSHA" }
      #expect(scripts.count == 2)
      #expect(Set(scripts.map { $0[4...].first { $0.utf8.count == 32 } }).count == 1)
    }
  }

  /// The connections between the masters may be cut while all of them serve.
  @Test func `what is forgotten is published at each master`() async throws {
    let nodes = [try ScriptedNode(), try ScriptedNode(), try ScriptedNode()]
    let ports = nodes.map(\.port)
    for node in nodes { node.map { ScriptedNode.slots(shared: ports) } }
    try await RedisNode.run(.on(ports, timeout: .seconds(30))) { node in
      try await until("all nodes are connected") { node.store.store.counters.usable == 3 }
      let id = Samples.id()
      _ = try await node.store.context.run {
        try await node.store.store.forget(id, fence: .seconds(60))
      }
      try await until("each node is told") {
        nodes.allSatisfy { $0.commands.contains { $0.first == "PUBLISH" && $0.last == id.text } }
      }
    }
  }

  private static let refusals = [
    ("TRYAGAIN Multiple keys request during rehashing of slot", "is on its way to another node"),
    ("LOADING Redis is loading", "is reading its data from disk"),
    ("CLUSTERDOWN Hash slot not served", "no node of the cluster serves the record's slot (CLUSTERDOWN"),
  ]

  @Test(arguments: refusals)
  func `a lasting refusal is an error after the time-out, which states it`(_ refusal: String, _ text: String)
    async throws
  {
    let source = try ScriptedNode()
    source.script { _ in "-\(refusal)\r\n" }
    source.map { ScriptedNode.slots(source.port) }
    try await RedisNode.run(.on([source.port], timeout: 1000)) { node in
      try await until("the map is read") { node.status == .serving }
      try await Pace.within(1500) {
        let before = source.recordCommands.count
        let (error, span) = await node.store.context.run {
          let start = BootInstant.now
          let error = await #expect(throws: StoreError.self) { try await node.store.store.find(Samples.id()) }
          return (error, BootInstant.now - start)
        }
        // The time-out passes while a copy of the command is on its way, if the node is slow just then.
        if case .fateUnknown = error { return 10_000 }
        guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(reason.contains(text), "\(reason)")
        // It is tried to the end, and after pauses.
        #expect(span >= 900)
        #expect(2..<40 ~= source.recordCommands.count - before)
        return span
      }
    }
  }

  @Test
  func `the commands of a batch keep their order at each node, and a slow one delays none of the others`()
    async throws
  {
    let nodes = [try ScriptedNode(), try ScriptedNode(), try ScriptedNode()]
    let ports = nodes.map(\.port)
    for node in nodes { node.map { ScriptedNode.slots(shared: ports) } }
    try await RedisNode.run(.on(ports, timeout: .seconds(30))) { node in
      try await until("all nodes are connected") { node.store.store.counters.usable == 3 }
      // Its replies bring the clock, without which a claim would be repeated.
      for _ in 0..<30 { _ = try await node.store.granted(Samples.request()) }
      let begun = nodes.map(\.recordCommands.count)
      let gate = ScriptGate()
      nodes[2].script { _ in
        gate.pass()
        gate.open()
        return ScriptedNode.time()
      }
      let requests = (0..<300).map { _ in Samples.request() }
      let keys = (0..<3).map { index in
        requests.map { node.key(of: $0.id) }.filter { ScriptedNode.share(of: $0) == index }
      }
      #expect(keys.allSatisfy { $0.count > 50 })
      let granted = Watched<[RecordID]>([])
      node.store.context.loop.execute {
        for request in requests {
          node.store.store.startClaim(request) { reply in
            if case .success(.granted(let claim)) = reply { granted.withValue { $0.append(claim.id) } }
          }
        }
      }
      let quick = keys[0].count + keys[1].count
      try await granted.until("the grants of two nodes") { $0.count == quick ? true : nil }
      #expect(granted.value.allSatisfy { ScriptedNode.share(of: node.key(of: $0)) != 2 })
      gate.open()
      try await granted.until("all grants") { $0.count == requests.count ? true : nil }
      for (index, scripted) in nodes.enumerated() {
        #expect(scripted.recordCommands.dropFirst(begun[index]).map { $0[3] } == keys[index])
      }
    }
  }

  @Test func `a temporary refusal is waited out`() async throws {
    let source = try ScriptedNode()
    let left = Mutex(3)
    source.script { _ in
      left.withLock { left in
        left -= 1
        return left > 0 ? "-TRYAGAIN Multiple keys request during rehashing of slot\r\n" : ScriptedNode.time()
      }
    }
    source.map { ScriptedNode.slots(source.port) }
    try await RedisNode.run(.on([source.port], timeout: .seconds(30))) { node in
      _ = try await node.store.granted(Samples.request())
      #expect(source.count(of: "EVALSHA") == 3)
    }
  }
}

/// A node that handles a connection's beginning like a real one, and a script's commands as a test wants.
private final class ScriptedNode: Sendable {
  private struct Script {
    var map: @Sendable () -> String = { "*0\r\n" }
    var evaluate: @Sendable ([String]) -> String = { _ in ScriptedNode.time() }
    var hasLeft = false
  }

  private final class Box: Sendable {
    let script = Mutex(Script())
  }

  private let box: Box
  private let server: ScriptedRedis

  init() throws {
    let box = Box()
    self.box = box
    server = try ScriptedRedis { words in
      if box.script.withLock({ $0.hasLeft }) { return "" }
      return switch words[0] {
      case "CLIENT": "+OK\r\n"
      case "ASKING": "+OK\r\n"
      case "SCRIPT": "$40\r\n\(String(repeating: "a", count: 40))\r\n"
      case "TIME": ScriptedRedis.time()
      case "INFO": "$0\r\n\r\n"
      case "HSETNX", "PUBLISH": ":0\r\n"
      case "HGET": "$1\r\ne\r\n"
      case "SUBSCRIBE": "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
      case "PING": "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
      case "CLUSTER": box.script.withLock { $0.map }()
      case "EVALSHA": box.script.withLock { $0.evaluate }(words)
      default: "-ERR unknown command\r\n"
      }
    }
  }

  var port: Int { server.port }
  var commands: [[String]] { server.commands }
  /// The commands of each connection.
  var connections: [[[String]]] { server.commandsByConnection }
  /// The scripts' commands on records.
  var recordCommands: [[String]] { commands.filter(Self.isOfRecord) }

  static func isOfRecord(_ words: [String]) -> Bool {
    words.count > 3 && words[0] == "EVALSHA" && words[2] != "0"
  }

  func script(_ evaluate: @escaping @Sendable ([String]) -> String) {
    box.script.withLock { $0.evaluate = evaluate }
  }

  /// Closes each connection that sends anything from now on.
  func leave() { box.script.withLock { $0.hasLeft = true } }

  func map(_ map: @escaping @Sendable () -> String) { box.script.withLock { $0.map = map } }

  func count(of command: String) -> Int { commands.count { $0[0] == command } }

  /// The reply of a script that did what it should: the time.
  static func time() -> String { ":\(WallClock.milliseconds())\r\n" }

  /// The reply to a script's command whose key another node has. A script without keys is no other node's.
  static func moved(_ words: [String], to port: Int) -> String {
    words.count > 3 ? "-MOVED \(SlotNumber.of(key: words[3])) 127.0.0.1:\(port)\r\n" : time()
  }

  /// The reply to `CLUSTER SLOTS` where one node has all slots.
  static func slots(_ port: Int) -> String { slots(shared: [port]) }

  /// The reply to `CLUSTER SLOTS` where nodes share the slots.
  static func slots(shared ports: [Int]) -> String {
    let parts = ports.enumerated().map { index, port in
      let (first, last) = (index * 16384 / ports.count, (index + 1) * 16384 / ports.count - 1)
      return "*3\r\n:\(first)\r\n:\(last)\r\n*3\r\n$9\r\n127.0.0.1\r\n:\(port)\r\n$1\r\nx\r\n"
    }
    return "*\(ports.count)\r\n" + parts.joined()
  }

  /// The one of three nodes that share the slots which has a key.
  static func share(of key: String) -> Int {
    let slot = SlotNumber.of(key: key)
    return (0..<3).last { slot >= $0 * 16384 / 3 } ?? 0
  }
}
