import SimRedis
import TestSupport

/// A connection in memory to a simulated server.
final class SimPeer {
  let server: SimRedisServer
  let id: Int
  private(set) var isClosed = false
  private var parser = RESPReplyParser()

  init(_ server: SimRedisServer) throws {
    self.server = server
    guard let id = server.open() else { throw TestFailure("nobody listens") }
    self.id = id
  }

  /// Sends a command, and returns the replies that have arrived.
  @discardableResult
  func send(_ words: [String], at now: Int64 = 0) -> [RESPReply] {
    server.receive(words.map { Bytes($0.utf8) }.encoded, on: id, at: now)
    return received()
  }

  /// Sends a command, and returns its one reply; `nil` if there is none.
  @discardableResult
  func call(_ words: String..., at now: Int64 = 0) -> RESPReply? { send(words, at: now).last }

  /// The replies that have arrived since the last call. Outputs of other connections are dropped.
  func received() -> [RESPReply] {
    var replies: [RESPReply] = []
    for output in server.takeOutputs() {
      switch output {
      case .bytes(id, let bytes): parser.feed(bytes)
      case .close(id): isClosed = true
      case .bytes, .close: break
      }
    }
    while let reply = parser.next() { replies.append(reply) }
    return replies
  }
}

extension SimRedisServer {
  /// A server of a test, whose clock shows a thousand seconds at the world's time 0.
  static func test(
    port: Int = 6379, seed: UInt64 = 1, _ change: (inout SimRedisSettings) -> Void = { _ in }
  ) -> SimRedisServer {
    var settings = SimRedisSettings(address: SimAddress(port: port))
    change(&settings)
    return SimRedisServer(
      settings, clock: SimRedisClock(microseconds: 1_000_000_000),
      random: SeededGenerator(seed: seed &+ UInt64(port)))
  }

  /// The text of a key.
  func text(_ key: String, at now: Int64 = 0) -> String? {
    guard case .text(let text)? = entry(Bytes(key.utf8), at: now)?.value else { return nil }
    return String(decoding: text, as: UTF8.self)
  }
}

/// Milliseconds of the world's time, in nanoseconds.
func after(_ milliseconds: Int64) -> Int64 { milliseconds * 1_000_000 }
