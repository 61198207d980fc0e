import Idempotency
import Testing
import Wire

/// The backend's instructions, by the lines in which they come.
struct SteeringTests {
  private static func steering(_ name: String, _ lines: [String]) -> Steering {
    var message = Request()
    message.fields = lines.map { (name, $0) }
    return Steering(of: message.head, by: Route.sample().policy)
  }

  @Test(
    arguments: [
      ([], nil), (["final"], .final), ([" retry "], .retry), (["unknown"], .unknown),
      ([""], nil), (["Final"], .final), (["FINAL", "final"], .final), (["RETRY, final"], .unknown),
      (["final", "final"], .final), (["final, final"], .final),
      (["final,"], .final), (["final", ""], .final), (["final", "retry"], .unknown),
      (["retry", "final"], .unknown), (["final, retry"], .unknown), (["final", "bogus"], .unknown),
      (["final retry"], .unknown), (["retry", "retry", "final"], .unknown),
    ] as [([String], OutcomeClass?)])
  func `an outcome counts once, and contradictions are unknown`(lines: [String], outcome: OutcomeClass?) {
    #expect(Self.steering("Idempotency-Outcome", lines) == Steering(outcome: outcome))
  }

  @Test(arguments: ["bogus", "final;x=1", "\"final\"", "commited"])
  func `another word lets nothing run again`(word: String) {
    let steering = Self.steering("Idempotency-Outcome", [word])
    #expect(steering.outcome == nil && steering.hasOtherOutcome)
    let policy = RoutePolicy(
      name: "r", match: RouteMatch(), upstream: UpstreamSettings(name: "u", address: .unix(path: "/s")))
    for (status, isUnknown) in [(200, false), (500, false), (503, true), (429, true), (504, true)] {
      var request = Request()
      request.fields = [("Idempotency-Outcome", word)]
      var head = request.head
      head.start = .status(status, reason: 0..<0)
      #expect(policy.leavesUnknown(head) == isUnknown, "\(status)")
    }
  }

  @Test(
    arguments: [
      ([], nil), (["60"], 60), (["0"], 0), (["007"], 7), (["60", "60"], 60), (["-5"], nil), (["+5"], nil),
      (["5.0"], nil), (["5s"], nil), (["0x5"], nil), ([""], nil), (["5, 6"], nil), (["5", "6"], nil),
      (["99999999999999999999"], 1 << 32),
    ] as [([String], Int64?)])
  func `a retention is one number of seconds`(lines: [String], seconds: Int64?) {
    #expect(
      Self.steering("Idempotency-Retention", lines)
        == Steering(retention: seconds.map { Milliseconds.seconds($0) }))
  }
}
