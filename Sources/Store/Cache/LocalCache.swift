import Idempotency
import Platform
import Synchronization

/// A cache of completed outcomes, shared by all event loops of this process.
///
/// A completed outcome never changes until it expires, is forgotten or resolved. So an entry lives no longer than the
/// store said, `invalidate` removes it, and a fill that began before an invalidation is dropped. While invalidations
/// from other nodes may be missed, nothing is cached or returned.
public final class LocalCache: Sendable {
  /// The minimum size of a shard, in bytes: a few of the largest responses.
  private static let minShardBytes = 4 << 20
  /// The maximum number of shards, with which threads rarely meet at one lock.
  private static let maxShards = 16

  private let shards: [CacheShard]
  private let mask: UInt64

  /// - Parameters:
  ///   - capacityBytes: The maximum size of all entries and their bookkeeping. 0 caches nothing.
  ///   - isSubscribed: False if invalidations come from other nodes and the subscription is not established yet.
  public init(capacityBytes: Int, isSubscribed: Bool = true) {
    var count = 1
    while count < Self.maxShards, capacityBytes / (count * 2) >= Self.minShardBytes { count *= 2 }
    shards = (0..<count).map { _ in
      CacheShard(capacityBytes: capacityBytes / count, isBypassed: !isSubscribed)
    }
    mask = UInt64(count - 1)
    isEnabled = capacityBytes > 0
  }

  /// The time for which outcomes are returned since the last sign that no invalidation is missing.
  static let maxSilence: Milliseconds = .seconds(2)
  /// The end of that time, by the boot-time clock, in nanoseconds.
  private let usableUntil = Atomic<Int64>(.max)

  /// Whether the cache has any capacity.
  public let isEnabled: Bool

  /// The permission for one fill, with the state of the cache before the store's command was sent.
  public struct Ticket: Sendable {
    var generation: UInt64
    var requestedAt: BootInstant
  }

  /// Returns the outcome of a claim if it is cached. A look-up that finds none is counted by the ticket.
  public func outcome(
    _ id: RecordID, _ fingerprint: Fingerprint, now: @autoclosure @Sendable () -> BootInstant = .now
  ) -> ClaimOutcome? {
    guard isEnabled else { return nil }
    let end = BootInstant(nanoseconds: usableUntil.load(ordering: .relaxed))
    return shard(of: id).outcome(id, fingerprint, before: end, now: now())
  }

  /// Returns a ticket, which must be taken before the store's command is sent; `nil` if nothing would be cached.
  ///
  /// - Parameter countsMiss: Whether the command asks for what the cache has not returned.
  public func ticket(
    for id: RecordID, countsMiss: Bool = false, now: BootInstant = .now
  ) -> Ticket? {
    guard isEnabled, let generation = shard(of: id).generation(countsMiss: countsMiss) else { return nil }
    return Ticket(generation: generation, requestedAt: now)
  }

  /// Caches an outcome from the store, unless an entry of the shard was invalidated since the ticket was taken.
  public func fill(
    _ id: RecordID, _ fingerprint: Fingerprint, _ record: CompletedRecord, with ticket: Ticket?
  ) {
    guard let ticket else { return }
    if case .encoded = record.outcome { return }
    // The remaining time by the store's clock counts from before the command was sent, so no entry outlives its record.
    shard(of: id).fill(
      id, fingerprint, record, expiry: ticket.requestedAt + record.remaining, ticket.generation)
  }

  /// Removes the entry of a record that was forgotten or resolved.
  public func invalidate(_ id: RecordID) {
    guard isEnabled else { return }
    shard(of: id).invalidate(id)
  }

  /// Empties the cache and disables it, since invalidations may be missed.
  public func subscriptionDown() {
    guard isEnabled else { return }
    for shard in shards { shard.restart(isBypassed: true) }
  }

  /// Enables the cache, which starts empty.
  public func subscriptionUp(now: BootInstant = .now) {
    guard isEnabled else { return }
    heardInvalidations(from: now)
    for shard in shards { shard.restart(isBypassed: false) }
  }

  /// Takes that every invalidation from before a moment has arrived. Without this, nothing is returned any more after
  /// `maxSilence`: this process may have stood still.
  public func heardInvalidations(from moment: BootInstant) {
    usableUntil.store((moment + Self.maxSilence).nanoseconds, ordering: .relaxed)
  }

  /// The statistics of all shards together.
  public var statistics: CacheStatistics {
    shards.reduce(into: CacheStatistics()) { $0 += $1.statistics }
  }

  private func shard(of id: RecordID) -> CacheShard {
    // The word differs from the one by which a shard hashes.
    shards[Int(truncatingIfNeeded: id.digest.words[1] & mask)]
  }
}

/// The counts of a cache since the start of the process, and its present size.
public struct CacheStatistics: Sendable, Equatable {
  /// The number of look-ups that found an outcome.
  public var hits = 0
  /// The number of look-ups that found none.
  public var misses = 0
  /// The number of entries that were dropped to make space, without those that expired or were invalidated.
  public var evictions = 0
  /// The number of entries at present.
  public var entries = 0
  /// The bytes of these entries, without the index.
  public var bytes = 0

  public init() {}

  static func += (left: inout CacheStatistics, right: CacheStatistics) {
    left.hits += right.hits
    left.misses += right.misses
    left.evictions += right.evictions
    left.entries += right.entries
    left.bytes += right.bytes
  }
}
