import Glibc
import Idempotency
import NIOCore

/// The wall clock, which may be set at any time. No lease and no expiry depends on it alone.
public enum WallClock {
  /// The nanoseconds since 1970.
  public static func nanoseconds() -> Int64 { nanosecondsOf(CLOCK_REALTIME) }

  /// The whole milliseconds since 1970.
  public static func milliseconds() -> Int64 { nanoseconds() / 1_000_000 }

  /// The whole seconds since 1970.
  public static func seconds() -> Int { Int(nanoseconds() / 1_000_000_000) }
}

extension BootInstant {
  /// The present time by the boot-time clock, which also advances while the machine sleeps and while the process is
  /// stopped.
  public static var now: BootInstant { BootInstant(nanoseconds: nanosecondsOf(CLOCK_BOOTTIME)) }
}

/// The CPU time that all threads of this process have taken, in nanoseconds.
public func processTimeNanoseconds() -> Int64 { nanosecondsOf(CLOCK_PROCESS_CPUTIME_ID) }

private func nanosecondsOf(_ clock: clockid_t) -> Int64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

extension Milliseconds {
  /// The whole milliseconds of a span, rounded towards zero.
  public init(_ span: TimeAmount) { self.init(span.nanoseconds / 1_000_000) }
}
