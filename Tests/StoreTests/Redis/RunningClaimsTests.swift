import Idempotency
import Platform
import Testing

@testable import Store

/// The claims that the index of open records does not have yet, without a clock.
struct RunningClaimsTests {
  private static let storeTime = StoreInstant(milliseconds: 5_000_000)

  private static func claim(
    lease: Milliseconds = 30_000, at began: Int64, attribution: Attribution? = nil,
    followsUnknown: Bool = false
  ) -> Claim {
    Claim(
      id: Samples.id(), owner: .random(), fingerprint: Samples.fingerprint(), attempt: 1,
      firstSeen: storeTime, followsUnknown: followsUnknown, onlyRejectedSoFar: true, uncountedAttempts: 0,
      lease: lease, unknownRetention: 0, remember: 0, fence: nil, requestedAt: instant(began),
      copiedUntil: nil, key: nil, attribution: attribution, turn: 0)
  }

  private static func instant(_ milliseconds: Int64) -> BootInstant {
    BootInstant(nanoseconds: milliseconds * 1_000_000)
  }

  private static func turn(_ running: inout RunningClaims, _ milliseconds: Int64) -> [OpenEntry] {
    running.turn(at: instant(milliseconds), storeTime)
  }

  @Test func `a claim that ends within a turn is nobody's`() {
    var running = RunningClaims()
    let claim = Self.claim(at: 0)
    running.began(claim)
    #expect(Self.turn(&running, 1000).isEmpty)
    #expect(running.has(claim.owner))
    let isEntered = running.ended(claim.owner)
    #expect(!isEntered)
    #expect(running.isEmpty)
    #expect(Self.turn(&running, 2000).isEmpty)
  }

  @Test func `a claim that runs for a whole turn is the index's from then on`() {
    var running = RunningClaims()
    let claim = Self.claim(at: 500, attribution: Samples.attribution(keyDigest: "0000ffff"))
    running.began(claim)
    #expect(Self.turn(&running, 1000).isEmpty)
    let due = running.turn(at: Self.instant(2000), Self.storeTime)
    #expect(due == [OpenEntry(id: claim.id, lapse: Self.storeTime + 28_500, keyDigest: "0000ffff")])
    #expect(due.first?.score == 5_028_500 && due.first?.keyScore == 65_535)
    #expect(!running.has(claim.owner) && running.isEmpty)
    let isEntered = running.ended(claim.owner)
    #expect(isEntered)
  }

  @Test func `the end of a claim that has taken an unknown outcome over takes the entry out`() {
    var running = RunningClaims()
    let claim = Self.claim(at: 0, followsUnknown: true)
    running.began(claim)
    let isEntered = running.ended(claim.owner)
    #expect(isEntered)
  }

  @Test func `a claim without a reply is entered as one that was granted`() {
    var running = RunningClaims()
    let request = Samples.request(lease: 30_000)
    running.mayHaveBegun(request, at: Self.instant(0))
    _ = running.turn(at: Self.instant(1000), Self.storeTime)
    let due = running.turn(at: Self.instant(2000), Self.storeTime)
    #expect(due == [OpenEntry(id: request.id, lapse: Self.storeTime + 28_000, keyDigest: nil)])
  }

  @Test func `what cannot be read comes before all times`() {
    let entry = OpenEntry(id: Samples.id(), lapse: nil, keyDigest: nil)
    #expect(entry.score == -1 && entry.keyScore == nil)
    #expect(OpenEntry(id: Samples.id(), lapse: Self.storeTime, keyDigest: "xyz").keyScore == nil)
  }
}
