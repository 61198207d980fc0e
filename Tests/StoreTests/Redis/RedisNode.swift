import Idempotency
import Logging
import NIOPosix
import Platform
import Store
import TestSupport
import Wire

/// One process's end of a Redis: a subscriber and a store, each on an event loop of its own.
struct RedisNode: Sendable {
  let settings: RedisEndpointSettings
  private let codec: OutcomeCodec
  let subscriber: RedisSubscriber
  let store: LoopConfined
  let log: LogRecorder

  /// - Parameters:
  ///   - codec: the form in which outcomes are stored.
  ///   - relayed: the port on which the store, and it alone, meets its Redis.
  ///   - group: the event loops; those of everybody where none are given.
  init(
    _ settings: RedisEndpointSettings, codec: OutcomeCodec = .plain, relayed: Int? = nil,
    group: MultiThreadedEventLoopGroup? = nil, didWait: @escaping @Sendable (Int64) -> Void = { _ in }
  ) {
    self.settings = settings
    self.codec = codec
    log = LogRecorder()
    let recorder = log
    let logger = Logger(label: "redis") { _ in recorder }
    let group = group ?? .singleton
    subscriber = RedisSubscriber(
      context: EventLoopContext(loop: group.next()), settings: settings, logger: logger)
    let context = EventLoopContext(loop: group.next())
    var storeSettings = settings
    if let relayed { storeSettings.address = .tcp(host: "127.0.0.1", port: relayed) }
    store = LoopConfined(
      store: RedisStore(
        context: context, settings: storeSettings, logger: logger, subscriber: subscriber, codec: codec,
        didWait: didWait),
      context: context)
  }

  /// Runs a test on a node of its own.
  static func run(
    _ settings: RedisEndpointSettings, relayed: Int? = nil,
    group: MultiThreadedEventLoopGroup? = nil, _ test: (RedisNode) async throws -> Void,
    didWait: @escaping @Sendable (Int64) -> Void = { _ in }
  ) async throws {
    let node = RedisNode(settings, relayed: relayed, group: group, didWait: didWait)
    do {
      try await test(node)
    } catch {
      node.close()
      throw error
    }
    node.close()
  }

  /// Another node on the same records.
  func sibling() -> RedisNode { RedisNode(settings, codec: codec) }

  func close() {
    store.store.close()
    subscriber.close()
  }
}

extension RedisEndpointSettings {
  /// A namespace that no other test has.
  static func ownNamespace() -> String { "test-\(UInt64.random(in: 0...UInt64.max))" }

  /// A namespace of its own on a server, and patience enough for a busy machine.
  static func on(_ server: RedisServer, timeout: Milliseconds = .seconds(10)) -> RedisEndpointSettings {
    var settings = RedisEndpointSettings(address: .tcp(host: "127.0.0.1", port: server.port))
    settings.timeout = timeout
    // No inspection: it would come between the commands that a test counts or loses.
    settings.inspectionInterval = .seconds(3600)
    settings.namespace = ownNamespace()
    return settings
  }
}

extension RedisEndpointSettings {
  /// A namespace of its own in the cluster of the nodes on these ports.
  static func on(_ ports: [Int], timeout: Milliseconds = .seconds(10)) -> RedisEndpointSettings {
    let seeds = ports.map { ServerAddress.tcp(host: "127.0.0.1", port: $0) }
    var settings = RedisEndpointSettings(address: seeds[0])
    settings.topology = .cluster(seeds)
    settings.timeout = timeout
    settings.inspectionInterval = .seconds(3600)
    settings.namespace = ownNamespace()
    return settings
  }
}

/// The server of all tests that need nothing special of it.
enum SharedRedis {
  private static let started = Task { try await RedisServer() }

  static var server: RedisServer {
    get async throws {
      try Tool.require("redis-server")
      return try await started.value
    }
  }
}

/// The form of an owner's token in Redis.
func hexadecimal(_ token: OwnerToken) -> String {
  [token.high, token.low].map { word in
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }.joined()
}
