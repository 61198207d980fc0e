import Idempotency
import NIOCore
import Platform
import Synchronization
import Telemetry
import Wire

/// A duplicate's wait for the delivery that owns its record. Ends by `end()`, which its runner must call. Used by
/// that runner's task alone, hence `@unchecked Sendable`.
final class DuplicateWait<Store: RecordStore>: @unchecked Sendable {
  private let watch: Store.Watch
  private let deadline: NIODeadline
  private let id: RecordID
  private let environment: ProxyEnvironment
  private let delivery: Delivery
  private var hasEnded = false

  /// `nil` if the delivery may not wait: by the route's setting, by its own `Prefer: wait=0`, because it is too late for
  /// another attempt of its own, or because the maximum of deliveries waits for the key or for the client.
  convenience init?<Backend: Upstream>(
    for call: KeyedCall, of runner: RequestRunner<Store, Backend>
  ) async throws(Problem) {
    let span = call.lifecycle.maxWait(
      call.route.policy.maxWait(for: runner.head), elapsed: call.retried?.elapsed)
    try await self.init(call.id, within: span, max: call.route.policy.maxWaiters, of: runner)
  }

  /// `nil` if the maximum of deliveries and inquiries waits for the key or for the client.
  convenience init?<Backend: Upstream>(
    for inquiry: OutcomeInquiry, of runner: RequestRunner<Store, Backend>
  ) async throws(Problem) {
    try await self.init(
      inquiry.id, within: inquiry.attach, max: inquiry.route.policy.maxWaiters, of: runner)
  }

  private init?<Backend: Upstream>(
    _ id: RecordID, within span: Milliseconds, max: Int, of runner: RequestRunner<Store, Backend>
  ) async throws(Problem) {
    self.id = id
    environment = runner.environment
    delivery = runner.delivery
    deadline = .now() + .milliseconds(span.count)
    guard span > 0, environment.waiting.enter(id, max: max) else { return nil }
    guard delivery.memory.enterWaiting(from: delivery.peer) else {
      environment.waiting.leave(id)
      return nil
    }
    do {
      watch = try await runner.worker.store.watch(id)
    } catch {
      delivery.memory.leaveWaiting()
      environment.waiting.leave(id)
      throw .storeUnavailable()
    }
    environment.counters.change(.waiting, by: 1)
    // A wait whose client is gone would take a place that another delivery needs.
    delivery.didDisconnect = { [watch] in watch.wake() }
  }

  /// Waits until the record may have changed or its lease is over. False once the delivery has waited long enough.
  func changed(leaseLeft: Milliseconds) async -> Bool {
    let left = Milliseconds(deadline - .now())
    guard left > 0 else { return false }
    // A moment past the lease's end, so that the store surely sees it lapsed.
    await watch.changed(within: min(left, max(leaseLeft, 0) + 20))
    return true
  }

  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    delivery.didDisconnect = nil
    watch.cancel()
    delivery.memory.leaveWaiting()
    environment.waiting.leave(id)
    environment.counters.change(.waiting, by: -1)
    invariant(environment.counters[.waiting] >= 0, "a wait ends twice")
  }
}

/// Counts the duplicates of each key that wait in this process, so that no key holds more than its share.
final class WaitingRoom: Sendable {
  private let counts = Mutex<[RecordID: Int]>([:])

  /// Admits one more duplicate. False if `max` wait already.
  func enter(_ id: RecordID, max: Int) -> Bool {
    counts.withLock { counts in
      let count = counts[id, default: 0]
      guard count < max else { return false }
      counts[id] = count + 1
      return true
    }
  }

  func leave(_ id: RecordID) {
    counts.withLock { counts in
      let count = counts[id, default: 0]
      invariant(count > 0, "a delivery leaves a key's waiting room that it never entered")
      counts[id] = count > 1 ? count - 1 : nil
    }
  }
}

/// The store's replies to several claims. Confined to the event loop on which they come, hence `@unchecked Sendable`.
final class ReplyGathering: @unchecked Sendable {
  private var replies: [ClaimReply?]
  private var missing: Int
  private let loop: any EventLoop
  private let onAll: ([ClaimReply]) -> Void

  init(count: Int, on loop: any EventLoop, onAll: @escaping ([ClaimReply]) -> Void) {
    invariant(count > 0, "a batch waits for the replies to no claims")
    replies = Array(repeating: nil, count: count)
    missing = count
    self.loop = loop
    self.onAll = onAll
  }

  func put(_ reply: ClaimReply, at place: Int) {
    loop.assertInEventLoop()
    invariant(missing > 0 && replies[place] == nil, "a claim of a batch gets a second reply")
    replies[place] = reply
    missing -= 1
    guard missing == 0 else { return }
    let all = replies.compactMap(\.self)
    invariant(all.count == replies.count, "a batch goes on without the reply to a claim")
    onAll(all)
  }
}
