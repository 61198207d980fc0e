import Idempotency
import Platform
import Synchronization
import Telemetry

/// The recent payloads and mismatches of callers, in bounded memory: how often one payload came under a new key of its
/// caller, and how many mismatches of a caller came in a row.
///
/// Shared by all event loops. A place holds half of a hash that is keyed anew in each process, a count and the time of
/// its beginning, in one word; the next hash that falls there takes it, and two loops that write at once count one. So
/// a count may be too low. One in 2^32 is of another caller. The memory behind its pointer holds atomics, hence
/// `@unchecked Sendable`.
public final class MisuseSketch: @unchecked Sendable {
  /// A quarter of a megabyte for each of the two kinds.
  private static let placeCount = 1 << 15
  /// The time in which repetitions count, in units of 2^30 ns: five minutes, in which clients retry.
  private static let window: UInt16 = 300
  /// The new key of a payload from which on it is suspicious.
  static let maxKeys = 5
  /// The mismatch in a row from which on they are.
  static let maxMismatches = 3

  private let payloads: UnsafeMutablePointer<Atomic<UInt64>>
  private let mismatches: UnsafeMutablePointer<Atomic<UInt64>>

  public init() {
    func places() -> UnsafeMutablePointer<Atomic<UInt64>> {
      let places = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: Self.placeCount)
      for index in 0..<Self.placeCount { (places + index).initialize(to: Atomic(0)) }
      return places
    }
    (payloads, mismatches) = (places(), places())
  }

  deinit {
    payloads.deallocate()
    mismatches.deallocate()
  }

  /// Notes the first run of a key, and returns the number of new keys under which its payload has come within the
  /// window, with this one.
  ///
  /// - Parameters:
  ///   - payload: A hash of caller and payload.
  ///   - caller: A hash of caller and route, whose mismatches are over.
  ///   - now: By the boot-time clock.
  public func noteRun(payload: Int, caller: Int, now: BootInstant) -> Int {
    let place = mismatches + Self.place(of: caller)
    // Most callers have none, and this is a load of memory that nobody writes.
    if Self.isOf(caller, place.pointee.load(ordering: .relaxed)) {
      place.pointee.store(0, ordering: .relaxed)
    }
    return Self.count(payload, at: payloads + Self.place(of: payload), now)
  }

  /// Notes a mismatch, and returns whether there are too many in a row.
  public func noteMismatch(caller: Int, now: BootInstant) -> Bool {
    Self.count(caller, at: mismatches + Self.place(of: caller), now) >= Self.maxMismatches
  }

  private static func place(of hash: Int) -> Int { Int(UInt64(bitPattern: Int64(hash)) % UInt64(placeCount)) }

  private static func tag(of hash: Int) -> UInt64 { UInt64(bitPattern: Int64(hash)) & 0xFFFF_FFFF_0000_0000 }

  private static func isOf(_ hash: Int, _ word: UInt64) -> Bool {
    word != 0 && word & 0xFFFF_FFFF_0000_0000 == tag(of: hash)
  }

  /// Adds one to the count of a hash, or begins anew, and returns the count.
  private static func count(_ hash: Int, at place: UnsafeMutablePointer<Atomic<UInt64>>, _ now: BootInstant)
    -> Int
  {
    let time = UInt16(truncatingIfNeeded: now.nanoseconds >> 30)
    let before = place.pointee.load(ordering: .relaxed)
    let isSame = isOf(hash, before) && time &- UInt16(truncatingIfNeeded: before) < window
    let count = isSame ? min((before >> 16 & 0xFFFF) + 1, 0xFFFF) : 1
    let start = isSame ? UInt64(UInt16(truncatingIfNeeded: before)) : UInt64(time)
    place.pointee.store(tag(of: hash) | count << 16 | start, ordering: .relaxed)
    return Int(count)
  }
}

/// The counts of clients that misuse their keys.
extension RequestRunner {
  /// Counts a first run whose key has just been another caller's, whose payload has come under other new keys, or whose
  /// key is weak.
  @inline(never)
  func countSighting(_ claim: Claim, of call: KeyedCall) {
    // If the payload is the key, two callers with equal payloads have the same key and need not be one client.
    guard claim.ordinal == 1, !call.key.isOfPayload else { return }
    let route = call.route.number
    if call.isKeySeenUnderOtherCaller(in: environment.sightings, at: claim.requestedAt) {
      worker.metrics.add(.keysUnderOtherCaller)
      worker.metrics.add(Suspicion.sharedKey, route: route)
    }
    let keys = call.keysOfPayload(in: environment.misuse)
    if keys > 1 { worker.metrics.add(.payloadsUnderNewKey, route: route) }
    if keys >= MisuseSketch.maxKeys { worker.metrics.add(Suspicion.samePayload, route: route) }
    if call.key.isWeak { worker.metrics.add(Suspicion.weakKey, route: route) }
  }

  /// Counts a refused payload that is one of several in a row.
  @inline(never)
  func countMismatch(of call: KeyedCall) {
    guard environment.misuse.noteMismatch(caller: call.callerHash, now: .now) else { return }
    worker.metrics.add(Suspicion.mismatches, route: call.route.number)
  }
}

extension IdempotencyKey {
  /// The information below which a key is weak, in bits: of so many keys of a caller in a day, two are equal by accident.
  private static let minBits = 40
  /// The length from which on no key of clients is weak that has as many distinct bytes as `enough`.
  private static let (long, enough) = (32, 3)

  /// Whether the key is easily guessed, or made twice by accident: it is short, or repeats few characters.
  ///
  /// The estimate is an upper bound: its length times the logarithm of the number of its distinct bytes. A random UUID
  /// has 130 bits by it, `order-1234` has 33, and the time in seconds 30. Takes some 30 ns.
  var isWeak: Bool {
    var seen: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    for byte in bytes.prefix(Self.long) {
      let bit = UInt64(1) << UInt64(byte & 63)
      switch byte >> 6 {
      case 0: seen.0 |= bit
      case 1: seen.1 |= bit
      case 2: seen.2 |= bit
      default: seen.3 |= bit
      }
    }
    let distinct =
      seen.0.nonzeroBitCount + seen.1.nonzeroBitCount + seen.2.nonzeroBitCount + seen.3.nonzeroBitCount
    guard bytes.count < Self.long else { return distinct < Self.enough }
    return bytes.count * Self.tenthsOfBits[min(distinct, Self.long)] < Self.minBits * 10
  }

  /// Ten times the binary logarithm of a number, by the number.
  private static let tenthsOfBits = [
    0, 0, 10, 16, 20, 23, 26, 28, 30, 32, 33, 35, 36, 37, 38, 39, 40, 41, 42, 42, 43, 44, 45, 45, 46, 46, 47,
    48, 48,
    49, 49, 50, 50,
  ]
}
