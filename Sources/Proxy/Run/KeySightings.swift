import Idempotency
import Synchronization

/// The keys of recent first runs with their callers, in bounded memory: a key that comes back under another caller soon
/// after is probably a retry with a refreshed token, which ran a second time.
///
/// Shared by all event loops. Each key has one place by a hash that is keyed anew in each process; a place holds half
/// of the hash, a quarter of the caller's and the time, in one word, and the next key that falls there takes it. So a
/// sighting may be lost. One in 2^32 is false, and so is one of a place that nothing else has taken for a multiple of 19
/// hours, after which its time begins anew. The memory behind its pointer holds atomics, hence `@unchecked Sendable`.
public final class KeySightings: @unchecked Sendable {
  /// Half a megabyte: a minute of a thousand first runs a second.
  private static let placeCount = 1 << 16
  /// The time after which a sighting no longer counts, in units of 2^30 ns: ten minutes, longer than clients retry.
  private static let window: UInt16 = 600

  private let places: UnsafeMutablePointer<Atomic<UInt64>>

  public init() {
    places = .allocate(capacity: Self.placeCount)
    for index in 0..<Self.placeCount { (places + index).initialize(to: Atomic(0)) }
  }

  deinit { places.deallocate() }

  /// Notes a first run, and returns whether another caller used the same key at the same endpoint a short time ago.
  ///
  /// - Parameter now: By the boot-time clock.
  public func note(_ identity: Int, caller: Int, now: BootInstant) -> Bool {
    let hash = UInt64(bitPattern: Int64(identity))
    let time = UInt16(truncatingIfNeeded: now.nanoseconds >> 30)
    let tag = hash & 0xFFFF_FFFF_0000_0000
    let word = tag | UInt64(UInt16(truncatingIfNeeded: caller)) << 16 | UInt64(time)
    let before = places[Int(hash % UInt64(Self.placeCount))].exchange(word, ordering: .relaxed)
    guard before != 0, before & 0xFFFF_FFFF_0000_0000 == tag, before >> 16 != word >> 16 else { return false }
    return time &- UInt16(truncatingIfNeeded: before) < Self.window
  }
}
