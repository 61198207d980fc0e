import Idempotency
import Testing

@testable import Store

/// The embedded store's time.
@Suite struct StoreClockTests {
  private static let boot = BootInstant(nanoseconds: 5_000_000_000)

  @Test func `time goes on as the boot-time clock does`() {
    let clock = StoreClock(
      floor: StoreInstant(milliseconds: 0), wall: StoreInstant(milliseconds: 1000), boot: Self.boot)
    #expect(clock.now(boot: Self.boot) == StoreInstant(milliseconds: 1000))
    #expect(clock.now(boot: Self.boot + 250) == StoreInstant(milliseconds: 1250))
  }

  @Test func `a wall clock behind the file starts where the file stands`() {
    let clock = StoreClock(
      floor: StoreInstant(milliseconds: 9000), wall: StoreInstant(milliseconds: 1000), boot: Self.boot)
    #expect(clock.now(boot: Self.boot + 1) == StoreInstant(milliseconds: 9001))
  }
}
