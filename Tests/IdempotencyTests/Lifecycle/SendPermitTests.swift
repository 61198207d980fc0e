import Idempotency
import Testing

/// The permit to send.
struct SendPermitTests {
  private static func at(milliseconds: Int64) -> BootInstant {
    BootInstant(nanoseconds: milliseconds * 1_000_000)
  }

  @Test func `permits one send`() {
    let permit = SendPermit(requestedAt: Self.at(milliseconds: 0), lease: 10_000)
    #expect(permit.take(now: Self.at(milliseconds: 5)))
    #expect(!permit.take(now: Self.at(milliseconds: 6)))
    #expect(permit.refusal == .alreadySent)
  }

  @Test func `is refused within the margin before the lease's end`() {
    let permit = SendPermit(requestedAt: Self.at(milliseconds: 0), lease: 10_000)
    #expect(!permit.take(now: Self.at(milliseconds: 9000)))
    #expect(permit.refusal == .stale)
    #expect(!permit.isSent)
  }

  @Test func `is refused once the store has replied that the record is another's`() {
    let permit = SendPermit(requestedAt: Self.at(milliseconds: 0), lease: 10_000)
    permit.revoke()
    #expect(!permit.take(now: Self.at(milliseconds: 1)))
    #expect(permit.refusal == .stale)
  }

  @Test func `counts from the request of the last acknowledged renewal`() {
    let permit = SendPermit(requestedAt: Self.at(milliseconds: 0), lease: 10_000)
    permit.renewed(requestedAt: Self.at(milliseconds: 8000), lease: 10_000)
    permit.renewed(requestedAt: Self.at(milliseconds: 3000), lease: 10_000)
    #expect(permit.take(now: Self.at(milliseconds: 16_999)))
  }

  @Test func `one send for several claims is a send of each`() {
    let parts = [10_000, 20_000].map {
      SendPermit(requestedAt: Self.at(milliseconds: 0), lease: Milliseconds($0))
    }
    #expect(!SendPermit(all: parts).take(now: Self.at(milliseconds: 9000)))
    #expect(parts.allSatisfy { !$0.isSent })
    #expect(SendPermit(all: parts).take(now: Self.at(milliseconds: 8999)))
    #expect(parts.allSatisfy { $0.isSent && !$0.take(now: Self.at(milliseconds: 1)) })
  }

  @Test(arguments: [(100, 50), (500, 100), (30_000, 3000)] as [(Int64, Int64)])
  func `leaves a margin of a tenth, a tenth of a second at least, half the lease at most`(
    lease: Int64, margin: Int64
  ) {
    #expect(SendPermit.margin(of: Milliseconds(lease)) == Milliseconds(margin))
  }
}
