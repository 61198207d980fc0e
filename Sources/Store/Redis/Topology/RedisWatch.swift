import Idempotency
import NIOCore
import Platform

/// One task's subscription to the ends of one record. Used on its task's loop, woken from the subscriber's loop.
public final class RedisWatch: RecordWatch, @unchecked Sendable {
  /// Accessed on the watcher's loop only.
  enum Beginning { case requested, confirmed, failed(String) }

  let id: RecordID
  private let context: EventLoopContext
  private let subscriber: RedisSubscriber
  private let signal: Signal
  private(set) var beginning = Beginning.requested
  /// The number among the watches of its subscriber. Confined to the subscriber's loop.
  var number = 0

  init(id: RecordID, context: EventLoopContext, subscriber: RedisSubscriber) {
    self.id = id
    self.context = context
    self.subscriber = subscriber
    signal = Signal(timers: context.timers)
  }

  public func changed(within span: Milliseconds) async {
    context.loop.assertInEventLoop()
    _ = await signal.wait(milliseconds: span.count)
  }

  public func cancel() { subscriber.leave(self) }

  /// Wakes the task. Safe from any thread.
  public func wake() { onOwnLoop { self.signal.set() } }

  /// Wakes the task, because the subscription is confirmed or has failed. Called on the subscriber's loop.
  func begin(_ beginning: Beginning) {
    subscriber.assertOnLoop()
    onOwnLoop {
      self.beginning = beginning
      self.signal.set()
    }
  }

  private func onOwnLoop(_ body: @escaping @Sendable () -> Void) {
    if context.loop.inEventLoop { body() } else { context.loop.execute(body) }
  }
}

/// The watches on one record, which share one subscription.
final class RedisTopic {
  enum Subscription {
    /// Not requested: there is no connection, or Redis has refused it. Followed by requested.
    case missing
    /// Redis' reply is awaited. Followed by confirmed or missing.
    case requested
    /// Messages arrive until the connection ends. Followed by missing.
    case confirmed
  }

  var subscription = Subscription.missing
  var watches: [Int: RedisWatch] = [:]
  /// The watches that wait for the confirmation of the subscription.
  var unconfirmed: Set<Int> = []
}

/// The announcements of changed records to all nodes of a namespace on one Redis. The scripts announce each change,
/// too, but only these report that Semel may not publish. Safe to use from any task.
extension RedisStore: CacheInvalidations {
  public func announce(_ id: RecordID) async throws(StoreError) {
    _ = try await reply(to: ["PUBLISH", keys.invalidations, id.text])
  }
}

extension RedisSubscriber {
  /// An event for a cache of completed outcomes.
  public enum Event: Sendable, Equatable {
    /// From now on every invalidation arrives. Entries from before may be stale.
    case up
    /// From now on invalidations may be missed.
    case down
    case invalidated(RecordID)
    /// Every invalidation from before this moment has arrived.
    case heard(BootInstant)
  }
}

extension RedisStore {
  func reply(to words: [String]) async throws(StoreError) -> RedisValue {
    let nodes = nodes
    return try await nodes.context.run { () async throws(StoreError) -> RedisValue in
      try await nodes.reply(to: words, words[0] == "PUBLISH" ? .any : .key(words[1]))
    }
  }
}
