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
    // The map knows the source alone until the first reading has ended.
    let readings = Mutex(0)
    let slots: @Sendable () -> String = {
      let isFirst = readings.withLock { count in
        count += 1
        return count == 1
      }
      return ScriptedNode.slots(isFirst ? source.port : target.port)
    }
    source.map(slots)
    target.map(slots)
    try await RedisNode.run(.on([source.port])) { node in
      try await until("the map is read") { node.store.store.counters.isUsable }
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<1000 {
          group.addTask { (try? await node.store.granted(Samples.request())) != nil }
        }
        for await isGranted in group { #expect(isGranted) }
      }
      // Those that were not yet on their way when the map was read are sent to the target alone.
      #expect(source.count(of: "EVALSHA") <= 1000)
      #expect(target.count(of: "EVALSHA") == 1000)
      #expect(readings.withLock { $0 } == 2)
    }
  }

  @Test func `a cycle of redirections ends in an error within the time-out`() async throws {
    let (one, other) = (try ScriptedNode(), try ScriptedNode())
    one.script { ScriptedNode.moved($0, to: other.port) }
    other.script { ScriptedNode.moved($0, to: one.port) }
    for node in [one, other] { node.map { ScriptedNode.slots(one.port) } }
    try await RedisNode.run(.on([one.port], timeout: 2000)) { node in
      let error = await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(reason.contains("point to each other"), "\(reason)")
    }
  }

  @Test func `ASK is followed with ASKING, and the map stays`() async throws {
    let (source, target) = (try ScriptedNode(), try ScriptedNode())
    source.script { _ in "-ASK 7 127.0.0.1:\(target.port)\r\n" }
    for node in [source, target] { node.map { ScriptedNode.slots(source.port) } }
    try await RedisNode.run(.on([source.port])) { node in
      for _ in 0..<2 { _ = try await node.store.granted(Samples.request()) }
      #expect(source.count(of: "EVALSHA") == 2)
      let words = target.commands.map { $0[0] }.filter { $0 == "ASKING" || $0 == "EVALSHA" }
      #expect(words == ["ASKING", "EVALSHA", "ASKING", "EVALSHA"])
      #expect(source.count(of: "CLUSTER") == 1)
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
    try await RedisNode.run(.on([source.port])) { node in
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

  @Test(arguments: [
    "TRYAGAIN Multiple keys request during rehashing of slot", "LOADING Redis is loading",
    "CLUSTERDOWN Hash slot not served",
  ])
  func `a lasting refusal is an error after the time-out`(_ refusal: String) async throws {
    let source = try ScriptedNode()
    source.script { _ in "-\(refusal)\r\n" }
    source.map { ScriptedNode.slots(source.port) }
    try await RedisNode.run(.on([source.port], timeout: 1000)) { node in
      let start = BootInstant.now.nanoseconds
      await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
      #expect(BootInstant.now.nanoseconds - start < 10_000_000_000)
      #expect(source.count(of: "EVALSHA") > 1 && source.count(of: "EVALSHA") < 40)
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
    try await RedisNode.run(.on([source.port])) { node in
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
      switch words[0] {
      case "CLIENT": "+OK\r\n"
      case "ASKING": "+OK\r\n"
      case "SCRIPT": "$40\r\n\(String(repeating: "a", count: 40))\r\n"
      case "EVAL": ScriptedNode.time()
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

  func script(_ evaluate: @escaping @Sendable ([String]) -> String) {
    box.script.withLock { $0.evaluate = evaluate }
  }

  func map(_ map: @escaping @Sendable () -> String) { box.script.withLock { $0.map = map } }

  func count(of command: String) -> Int { commands.count { $0[0] == command } }

  /// The reply of a script that did what it should: the time.
  static func time() -> String { ":\(WallClock.milliseconds())\r\n" }

  /// The reply to a script's command whose key another node has. A script without keys is no other node's.
  static func moved(_ words: [String], to port: Int) -> String {
    words.count > 3 ? "-MOVED \(SlotNumber.of(key: words[3])) 127.0.0.1:\(port)\r\n" : time()
  }

  /// The reply to `CLUSTER SLOTS` where one node has all slots.
  static func slots(_ port: Int) -> String {
    "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:\(port)\r\n$1\r\nx\r\n"
  }
}
