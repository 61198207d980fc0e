import Idempotency
import NIOCore
import Testing
import Wire

/// The outcomes that deliveries store in place of running their requests.
struct OvertakenOutcomeTests {
  private static let completion = Completion(
    outcome: .whole(RecordedResponse(status: 201, fields: ByteBuffer(), body: ByteBuffer(string: "made"))),
    retention: 1, remember: 2)

  private static func claim(
    attempt: Int, followsUnknown: Bool, of body: String = "body", fence: Fence? = nil
  ) -> Claim {
    let sample = Claim.sample(attempt: attempt, followsUnknown: followsUnknown)
    return Claim(
      id: sample.id, owner: sample.owner,
      fingerprint: Fingerprint(recipe: Recipe(), digest: Digest256.sha256(of: Array(body.utf8))),
      attempt: attempt, firstSeen: sample.firstSeen, followsUnknown: followsUnknown, onlyRejectedSoFar: false,
      lease: sample.lease, unknownRetention: sample.unknownRetention, remember: sample.remember, fence: fence,
      requestedAt: sample.requestedAt)
  }

  @Test(
    arguments: [
      // Taken over from the run; given back by a later owner; made anew by a store that had lost it.
      (claim(attempt: 3, followsUnknown: true), true), (claim(attempt: 4, followsUnknown: false), true),
      (claim(attempt: 1, followsUnknown: false), true),
      (claim(attempt: 1_000_000_001, followsUnknown: false), true),
      // Released by an operator; of another payload; forgotten.
      (claim(attempt: 3, followsUnknown: false), false),
      (claim(attempt: 3, followsUnknown: true, of: "other"), false),
      (
        claim(
          attempt: 3, followsUnknown: true, fence: Fence(until: StoreInstant(milliseconds: 9), left: 5)),
        false
      ),
    ] as [(Claim, Bool)])
  func `an outcome is for whoever has the same record`(claim: Claim, isFor: Bool) {
    let outcome = OvertakenOutcome(Self.completion, of: Self.claim(attempt: 2, followsUnknown: false))
    #expect(outcome.ends(claim) == isFor)
  }

  @Test func `a delivery stores the outcome that it inherits, and does not run`() {
    let claim = Self.claim(attempt: 3, followsUnknown: true)
    var lifecycle = ClaimLifecycle(route: .sample { $0.onUnknown = .retry })
    lifecycle.inherit(OvertakenOutcome(Self.completion, of: Self.claim(attempt: 2, followsUnknown: false)))
    guard case .adopt(let adopting, let completion) = lifecycle.claimed(.granted(claim)) else {
      Issue.record("the outcome was not adopted")
      return
    }
    #expect(adopting == claim && completion == Self.completion)
  }
}
