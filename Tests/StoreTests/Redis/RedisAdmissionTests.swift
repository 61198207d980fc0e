import Idempotency
import Testing
import Wire

@testable import Store

/// Which claims are sent to a Redis, by what is known of it.
struct RedisAdmissionTests {
  private let start = BootInstant(nanoseconds: 1_000_000_000)

  private func made(_ requiresDurable: Bool) -> RedisConditions {
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    settings.requireDurable = requiresDurable
    return RedisConditions(settings)
  }

  private func admission(
    _ requiresDurable: Bool = false, _ comparison: RedisConditions.Comparison = .accepted,
    doubts: [String] = [], loss: String? = nil, shortage: String? = nil, pause: Milliseconds? = nil
  ) -> RedisAdmission {
    var conditions = made(requiresDurable)
    conditions.comparison = comparison
    conditions.facts.doubts = doubts
    conditions.loss = loss
    if let pause { conditions.pause(until: start + pause) }
    return conditions.admission(shortage: shortage, at: start)
  }

  @Test func `nothing is sent before the configuration is compared, nor if it is another one`() {
    #expect(admission() == .open)
    #expect(admission(false, .awaited) == .refused(.uncompared))
    var settings = RedisEndpointSettings(address: .unix(path: "/run/redis.sock"))
    for isAwaited in [false, true] {
      settings.awaitsAdmission = isAwaited
      #expect(RedisConditions(settings).comparison == (isAwaited ? .awaited : .accepted))
    }
    #expect(admission(false, .refused("other")) == .refused(.otherConfiguration("other")))
  }

  @Test func `a Redis that may lose records is refused with require_durable alone`() {
    #expect(admission(false, doubts: ["it evicts"], loss: "they are gone") == .open)
    let doubted = RedisAdmission.Reason.loss(
      "require_durable is set, and this Redis may lose records: it evicts")
    #expect(admission(true, doubts: ["it evicts", "it forgets"]) == .refused(doubted))
    let lost = RedisAdmission.Reason.loss("require_durable is set, and they are gone")
    #expect(admission(true, doubts: ["it evicts"], loss: "they are gone") == .refused(lost))
    #expect(admission(true) == .open)
  }

  @Test func `a Redis that takes no changes admits claims, for what is recorded is replayed`() {
    var conditions = made(true)
    conditions.facts.obstacle = "no memory left"
    #expect(conditions.admission(shortage: nil, at: start) == .open)
  }

  @Test func `a refusal of the whole store is seen before one that passes, and any before a pause`() {
    let (other, few) = (RedisConditions.Comparison.refused("other"), "too few replicas")
    #expect(
      admission(true, other, doubts: ["it evicts"], shortage: few) == .refused(.otherConfiguration("other")))
    guard case .refused(.loss) = admission(true, .awaited, doubts: ["it evicts"], shortage: few, pause: 5)
    else {
      Issue.record("a doubt is hidden")
      return
    }
    #expect(admission(true, .awaited, shortage: few, pause: 5) == .refused(.shortage(few)))
    #expect(admission(true, .awaited, pause: 5) == .refused(.uncompared))
    #expect(admission(true, pause: 5) == .paused(until: start + 5))
    for reason in [RedisAdmission.Reason.otherConfiguration("a"), .loss("a")] { #expect(reason.isOfStore) }
    for reason in [RedisAdmission.Reason.shortage("a"), .uncompared] { #expect(!reason.isOfStore) }
  }

  @Test func `an inspection of the server before says nothing of the one that took over`() {
    var conditions = made(true)
    conditions.facts.run = "new"
    conditions.facts.doubts = ["it evicts"]
    var found = RedisFacts()
    found.run = "old"
    conditions.inspected(found)
    guard case .refused(.loss) = conditions.admission(shortage: nil, at: start) else {
      Issue.record("the facts of another server count")
      return
    }
    // Those of this server count, and those without a name or of several servers together.
    for run in ["new", nil] {
      conditions.facts.run = "new"
      conditions.facts.doubts = ["it evicts"]
      found.run = run
      conditions.inspected(found)
      #expect(conditions.admission(shortage: nil, at: start) == .open)
    }
    var other = found
    (found.run, other.run) = ("new", "old")
    #expect(found.joined(with: other).run == nil)
  }

  @Test func `a pause lasts until the latest end that was asked for`() {
    var conditions = made(false)
    for end in [200, 2000, 300] as [Milliseconds] { conditions.pause(until: start + end) }
    for (after, admission) in [
      (1999, .paused(until: start + 2000)), (2000, .open), (2001, .open),
    ] as [(Milliseconds, RedisAdmission)] {
      #expect(conditions.admission(shortage: nil, at: start + after) == admission)
    }
  }
}
