import Idempotency
import Logging
import Platform
import TestSupport
import Testing

@testable import Store

/// Steps of Redis' clock.
@Suite(.timeLimit(.minutes(1)))
struct RedisClockTests {
  private let start = BootInstant(nanoseconds: 50_000_000_000)

  /// The result of a reply of a clock that is `difference` ahead, after `span`, to a command that took `duration`.
  private func read(
    _ clock: inout RedisClock, after span: Milliseconds, ahead difference: Int64, duration: Milliseconds = 1
  ) -> Milliseconds? {
    let at = start + span
    return clock.update(
      to:
        StoreInstant(milliseconds: at.nanoseconds / 1_000_000 + difference), sentAt: at - duration, at: at)
  }

  @Test(arguments: [60_000, 150, -150, -60_000] as [Int64])
  func `a step is found at the first reply, once`(_ step: Int64) throws {
    var clock = RedisClock()
    #expect(read(&clock, after: 0, ahead: 7) == nil)
    #expect(read(&clock, after: 1000, ahead: 7) == nil)
    let second = read(&clock, after: 2000, ahead: 7 + step)
    let found = try #require(second)
    #expect(abs(found.count - step) < 10)
    #expect(read(&clock, after: 3000, ahead: 7 + step) == nil)
  }

  @Test func `neither drift nor slow replies are steps`() {
    var clock = RedisClock()
    _ = read(&clock, after: 0, ahead: 0)
    // The reply was in the socket for a minute.
    let late = start + 70_000
    let now = StoreInstant(milliseconds: (start + 10_000).nanoseconds / 1_000_000)
    #expect(clock.update(to: now, sentAt: start + 9999, at: late) == nil)
    // Half a thousandth ahead, for a day.
    for second in stride(from: 80 as Int64, to: 86_400, by: 600) {
      #expect(read(&clock, after: .seconds(second), ahead: second / 2) == nil)
    }
  }

  @Test func `a new connection may lead to a server whose clock differs`() {
    var clock = RedisClock()
    _ = read(&clock, after: 0, ahead: 0)
    clock.reset()
    #expect(clock.estimate(at: start) == nil)
    #expect(read(&clock, after: 1000, ahead: 60_000, duration: 500) != nil)
  }

  @Test func `a claim whose own reply shows that the clock was set takes nothing over`() async throws {
    let clock = try await SteppedClock()
    let server = try await RedisServer(clock: clock)
    try await RedisNode.run(.on(server)) { node in
      let lost = try await node.store.granted(Samples.request())
      #expect(try await node.store.markUnknown(lost) == .done)
      try clock.set(ahead: 60)
      let outcome = try? await node.store.claim(Samples.again(lost, takeOver: .afterSettle(.seconds(30))))
      // `nil`: it was granted by the new time, and refused. The step may have been seen by another reply before.
      if let outcome { #expect(outcome.taken == .unknown) }
      #expect(try await node.store.find(lost.id).name == .unknown)
    }
  }

  @Test func `cached outcomes are dropped when the clock is set`() async throws {
    let clock = try await SteppedClock()
    let server = try await RedisServer(clock: clock)
    try await RedisNode.run(.on(server)) { node in
      let events = Watched<[RedisSubscriber.Event]>([])
      node.subscriber.observe { event in
        if case .heard = event { return }
        events.withValue { $0.append(event) }
      }
      // Nothing is cached before.
      try await events.until("invalidations arrive", within: .seconds(30)) { $0.last == .up ? true : nil }
      _ = try await node.store.find(Samples.request().id)
      #expect(events.value == [.up])
      try clock.set(ahead: 60)
      try await until("a reply shows the new time") {
        _ = try await node.store.find(Samples.request().id)
        return events.value.count > 1
      }
      #expect(events.value[1] == .down)
    }
  }

  @Test(arguments: [false, true])
  func `a step beyond what is remembered is a loss of all outcomes`(isRequired: Bool) async throws {
    let clock = try await SteppedClock()
    let server = try await RedisServer(appendOnly: isRequired, clock: clock)
    var settings = RedisEndpointSettings.on(server)
    settings.inspectionInterval = 200
    settings.requireDurable = isRequired
    try await RedisNode.run(settings) { node in
      let sibling = node.sibling()
      // Both are remembered for ten minutes.
      let claim = try await node.store.completed()
      _ = try await sibling.store.completed()
      try clock.set(ahead: 300)
      try await until("the step is met") {
        node.log.messages.contains { $0.contains("Redis' clock was set") }
          && sibling.log.messages.contains { $0.contains("Redis' clock was set") }
      }
      #expect(node.subscriber.lossCount == 0 && sibling.subscriber.lossCount == 0)
      try clock.set(ahead: 7200)
      try await until("the loss is found") {
        node.subscriber.lossCount > 0 && sibling.subscriber.lossCount > 0
      }
      #expect(try await node.store.find(claim.id) == .absent)
      try await until("the loss is in the log") { !node.log.messages(at: .critical).isEmpty }
      let critical = node.log.messages(at: .critical)
      #expect(critical.count == 1)
      let effect =
        isRequired
        ? "no protected request runs until Semel is restarted" : "retries of their requests run again"
      #expect(critical.first?.contains(effect) == true, "\(critical)")
      if isRequired {
        try await until("claims are refused") {
          do throws(StoreError) {
            _ = try await node.store.claim(Samples.request())
            return false
          } catch {
            return "\(error)".contains("clock was set forwards")
          }
        }
      } else {
        // Above all attempts before, and after the pause in which owners renew their leases.
        #expect(try await node.store.granted(Samples.again(claim)).attempt == 1_000_000_001)
      }
      try await until("the next generation is written") {
        try server.command(["HGET", "\(settings.namespace):facts", "epoch"])?.hasPrefix("1.") == true
      }
      // Inspections read it, and take it for no other loss.
      let inspections = try server.calls(of: "hget")
      try await until("both have read it") { try server.calls(of: "hget") >= inspections + 6 }
      #expect(node.subscriber.lossCount == 1 && sibling.subscriber.lossCount == 1)
      sibling.close()
    }
  }

  @Test(arguments: [60, -60] as [Int64])
  func `no live lease lapses because the clock was set, and none lasts longer`(_ seconds: Int64) async throws
  {
    let clock = try await SteppedClock()
    let server = try await RedisServer(clock: clock)
    try await RedisNode.run(.on(server)) { node in
      let sibling = node.sibling()
      let lease = Milliseconds.seconds(30)
      let live = try await sibling.store.granted(Samples.request().changed(lease: lease))
      let dead = try await sibling.store.granted(Samples.request().changed(lease: lease))
      let renewals = Watched(0)
      sibling.subscriber.observeAlarms {
        sibling.store.context.task {
          if (try? await sibling.store.store.renew(live)) == .done { renewals.withValue { $0 += 1 } }
        }
      }
      try await until("the subscription stands") { sibling.subscriber.counters.usable > 0 }
      try clock.set(ahead: seconds)
      let request = Samples.again(live, takeOver: .afterSettle(0))
      try await until("the owner has renewed by the new time") {
        let outcome = try await node.store.claim(request)
        guard case .taken(.inFlight(let left, _)) = outcome else { throw Unexpected(what: "\(outcome)") }
        return left <= lease && renewals.value > 0
      }
      try await until("the step is in the log") {
        node.log.messages.contains { $0.contains("Redis' clock was set") }
      }
      #expect(try await sibling.store.complete(live, with: Samples.completion()).outcome == .done)
      // Nobody renews the other one.
      let outcome = try await node.store.claim(Samples.again(dead, takeOver: .afterSettle(0)))
      if seconds > 0 {
        // By its age it may be taken over, but this age is the clock's.
        guard case .taken(.unknown) = outcome else { throw Unexpected(what: "\(outcome)") }
        let later = Samples.again(dead, takeOver: .afterSettle(0)).changed(lease: .seconds(1))
        try await until("it is taken over when a lease has passed since then") {
          if case .granted = try await node.store.claim(later) { true } else { false }
        }
      } else {
        guard case .taken(.inFlight(let left, _)) = outcome else { throw Unexpected(what: "\(outcome)") }
        #expect(left > lease - .seconds(20) && left <= lease)
      }
      sibling.close()
    }
  }
}
