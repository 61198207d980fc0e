import Synchronization

/// The replies of one server to one event loop's connections. Safe to read from any thread.
public final class RedisNodeFigures: Sendable {
  /// The server's address.
  public let name: String
  private let replyCount = Atomic<Int>(0)
  private let nanosecondCount = Atomic<Int64>(0)

  init(name: String) { self.name = name }

  /// The number of replies to scripts.
  public var replies: Int { replyCount.load(ordering: .relaxed) }
  /// The time that they took together, from the command's writing to the reading of the reply.
  public var seconds: Double { Double(nanosecondCount.load(ordering: .relaxed)) / 1e9 }

  /// Takes a reply. Called on the loop of the connections alone, hence without atomic additions.
  func replied(after nanoseconds: Int64) {
    replyCount.store(replyCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    nanosecondCount.store(nanosecondCount.load(ordering: .relaxed) &+ nanoseconds, ordering: .relaxed)
  }
}
