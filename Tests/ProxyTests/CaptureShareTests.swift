import Proxy
import Testing

/// The memory that only captured responses take.
struct CaptureShareTests {
  private static let memory = 64 << 20
  private static let share = 16 << 20

  private static func grow(
    _ captures: CaptureShare, _ count: Int, beside own: Int = 0, caller: Int, isWithinPart: Bool = true
  ) -> Bool {
    captures.grow(by: count, beside: own, caller: caller, isWithinPart: isWithinPart, of: memory)
  }

  @Test func `by default all requests in flight find room for a small response`() {
    let captures = CaptureShare()
    #expect((0..<4096).allSatisfy { _ in captures.reserve(of: 256 << 20) })
    // And one that is larger, for a client that holds no more.
    #expect(captures.grow(by: 1 << 20, beside: 0, caller: 1, isWithinPart: true, of: 256 << 20))
  }

  @Test func `nothing is claimed past three quarters, so that what was claimed may grow`() {
    let captures = CaptureShare()
    var count = 0
    while captures.reserve(of: Self.memory) { count += 1 }
    #expect(count * CaptureShare.reservation == Self.share / 4 * 3)
    #expect(Self.grow(captures, Self.share / 4, caller: 1))
    #expect(!Self.grow(captures, 1, beside: Self.share / 4, caller: 1))
    for _ in 0..<count { captures.giveReservation() }
    captures.shrink(by: Self.share / 4, caller: 1)
    #expect(captures.taken == 0)
  }

  @Test func `one caller leaves half of the memory to the others`() {
    let captures = CaptureShare()
    var taken = 0
    while Self.grow(captures, 1 << 20, caller: 1) { taken += 1 << 20 }
    #expect(taken == Self.share / 2)
    #expect(Self.grow(captures, 1 << 20, caller: 2) && Self.grow(captures, 1 << 20, caller: 2))
    #expect(!Self.grow(captures, 1 << 20, caller: 2))
    #expect(!Self.grow(captures, 1 << 20, caller: 3, isWithinPart: false))
    #expect(Self.grow(captures, 6 << 20, caller: 3))
    #expect(!Self.grow(captures, 1, caller: 4))
    captures.shrink(by: 6 << 20, caller: 3)
    #expect(Self.grow(captures, 1, caller: 4))
  }

  @Test func `outcomes that wait for the store take half of it`() {
    let captures = CaptureShare()
    #expect(captures.holdOutcome(Self.share / 2, of: Self.memory))
    #expect(!captures.holdOutcome(1, of: Self.memory))
    #expect(captures.taken == Self.share / 2)
    #expect(captures.reserve(of: Self.memory))
    captures.giveReservation()
    captures.releaseOutcome(Self.share / 2)
    #expect(captures.taken == 0)
    // And no more than there is.
    #expect(Self.grow(captures, Self.share / 4 * 3, caller: 1))
    #expect(!captures.holdOutcome(Self.share / 2, of: Self.memory))
    #expect(captures.holdOutcome(Self.share / 4, of: Self.memory))
    captures.releaseOutcome(Self.share / 4)
    captures.shrink(by: Self.share / 4 * 3, caller: 1)
    #expect(captures.taken == 0)
  }

  @Test func `one response may be as large as the share`() {
    let captures = CaptureShare()
    #expect(Self.grow(captures, Self.share / 2, caller: 1))
    #expect(Self.grow(captures, Self.share / 2, beside: Self.share / 2, caller: 1))
    #expect(captures.taken == Self.share)
  }
}
