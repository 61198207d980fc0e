import Idempotency
import Loop

/// Completed outcomes, kept in this process for all its event loops.
///
/// A completed outcome never changes until it expires, is forgotten or resolved. So an entry lives no longer
/// than the store said was left; `invalidate` takes it away; and a fill that was asked for before an
/// invalidation and comes after it is dropped. While pushes of invalidations may be missed nothing is kept
/// and nothing is answered.
public final class LocalCache: Sendable {
  /// A shard is not worth its lock below this size: a few of the largest answers must fit.
  private static let smallestShard = 4 << 20
  /// Threads that meet in one lock wait; 16 shards make that rare on any number of cores that a proxy has.
  private static let mostShards = 16

  private let shards: [CacheShard]
  private let mask: UInt64

  /// - Parameters:
  ///   - capacityBytes: for answers and bookkeeping, over all shards; 0 keeps nothing.
  ///   - isSubscribed: false where invalidations are pushed and the subscription is not up yet.
  public init(capacityBytes: Int, isSubscribed: Bool = true) {
    var count = 1
    while count < Self.mostShards, capacityBytes / (count * 2) >= Self.smallestShard { count *= 2 }
    shards = (0..<count).map { _ in
      CacheShard(capacityBytes: capacityBytes / count, isBypassed: !isSubscribed)
    }
    mask = UInt64(count - 1)
    isEnabled = capacityBytes > 0
  }

  /// Whether anything is ever kept.
  public let isEnabled: Bool

  /// What allows one fill: how things stood before the store was asked.
  public struct Ticket: Sendable {
    var generation: UInt64
    var askedAt: BootInstant
  }

  /// The answer to a claim, where the outcome is kept. Never waits.
  ///
  /// - Parameters:
  ///   - countsMiss: false where a look that finds nothing is followed by another.
  public func answer(
    _ id: RecordID, _ fingerprint: Fingerprint, now: BootInstant = LocalCache.now(), countsMiss: Bool = true
  ) -> ClaimOutcome? {
    guard isEnabled else { return nil }
    return shard(of: id).answer(id, fingerprint, now: now, countsMiss: countsMiss)
  }

  /// To be taken before the store is asked; `nil` where nothing would be kept.
  public func ticket(for id: RecordID, now: BootInstant = LocalCache.now()) -> Ticket? {
    guard isEnabled, let generation = shard(of: id).generation else { return nil }
    return Ticket(generation: generation, askedAt: now)
  }

  /// Keeps an outcome that the store told, unless something was invalidated since the ticket was taken.
  public func fill(
    _ id: RecordID, _ fingerprint: Fingerprint, _ record: CompletedRecord, with ticket: Ticket?
  ) {
    guard let ticket else { return }
    // What was left by the store's clock counts from before it was asked: no entry outlives its record.
    shard(of: id).fill(
      id, fingerprint, record, expiry: ticket.askedAt + record.remaining, ticket.generation)
  }

  /// The record was forgotten or resolved.
  public func invalidate(_ id: RecordID) {
    guard isEnabled else { return }
    shard(of: id).invalidate(id)
  }

  /// Pushes may be missed from now on: the store answers everything.
  public func subscriptionDown() {
    guard isEnabled else { return }
    for shard in shards { shard.restart(isBypassed: true) }
  }

  /// Pushes come again: begins empty, since some may have been missed.
  public func subscriptionUp() {
    guard isEnabled else { return }
    for shard in shards { shard.restart(isBypassed: false) }
  }

  public var statistics: CacheStatistics {
    shards.reduce(into: CacheStatistics()) { $0 += $1.statistics }
  }

  public static func now() -> BootInstant { BootInstant(nanoseconds: bootTimeNanoseconds()) }

  private func shard(of id: RecordID) -> CacheShard {
    // Not the word that the dictionary of a shard hashes by.
    shards[Int(truncatingIfNeeded: id.digest.words[1] & mask)]
  }
}
