import Idempotency
import Loop

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The embedded store's time: the machine's wall clock as it stood when the store was opened, carried on by
/// the boot-time clock.
///
/// Whoever sets the wall clock while the process lives changes nothing: a step back would revive leases, a
/// step forward would end those of live owners. A start takes the wall clock anew, since no owner outlives
/// the process; but never a time before the latest that the file tells of, so that a clock set back in
/// between cannot give ended records their lives again.
struct StoreClock: Sendable {
  private let start: StoreInstant
  private let startedAt: BootInstant

  /// - Parameter floor: the latest time that the file tells of.
  init(floor: StoreInstant, wall: StoreInstant = Self.wall(), boot: BootInstant = Self.boot()) {
    start = max(floor, wall)
    startedAt = boot
  }

  func now(boot: BootInstant = Self.boot()) -> StoreInstant { start + (boot - startedAt) }

  static func boot() -> BootInstant { BootInstant(nanoseconds: bootTimeNanoseconds()) }

  private static func wall() -> StoreInstant {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return StoreInstant(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
  }
}
