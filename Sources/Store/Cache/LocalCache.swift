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

/// A record store with a local cache of completed outcomes.
public struct CachedStore<Base: RecordStore>: RecordStore {
  public let base: Base
  public let cache: LocalCache

  public init(_ base: Base, cache: LocalCache) {
    self.base = base
    self.cache = cache
  }

  public func knownOutcome(of id: RecordID, _ fingerprint: Fingerprint) -> ClaimOutcome? {
    cache.outcome(id, fingerprint)
  }

  public func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    guard cache.isEnabled else { return base.startClaim(request, onReply: onReply) }
    let ticket = cache.ticket(for: request.id, countsMiss: true)
    base.startClaim(request) { [cache] reply in
      if case .success(.taken(.completed(let record))) = reply {
        cache.fill(request.id, request.fingerprint, record, with: ticket)
      }
      onReply(reply)
    }
  }

  public func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome { try await base.renew(claim) }

  public func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    let ticket = cache.ticket(for: claim.id)
    let reply = try await base.complete(claim, with: completion)
    if reply.outcome == .done, let record = reply.record {
      cache.fill(claim.id, claim.fingerprint, record, with: ticket)
    }
    return reply
  }

  public func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    try await base.release(claim, release)
  }

  public func markUnknown(
    _ claim: Claim, because cause: LossCause?
  ) async throws(StoreError) -> OwnerOutcome {
    try await base.markUnknown(claim, because: cause)
  }

  public func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    try await base.find(id, reading: reading)
  }

  public func isDown(for id: RecordID) async -> Bool { await base.isDown(for: id) }

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    try await base.list(after: cursor)
  }

  public func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    try await base.inspect(id)
  }

  public func search(
    _ filter: RecordFilter, after cursor: String?
  ) async throws(StoreError) -> FoundRecords {
    try await base.search(filter, after: cursor)
  }

  public var openIndex: (any OpenRecordIndex)? { base.openIndex }

  public func isCursor(_ text: String) -> Bool { base.isCursor(text) }

  public func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    try await invalidating(id) { () throws(StoreError) in try await base.forget(id, fence: fence) }
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    try await invalidating(id) { () throws(StoreError) in
      try await base.resolve(id, as: resolution, amending: amending, attempt: attempt)
    }
  }

  public func watch(_ id: RecordID) async throws(StoreError) -> Base.Watch { try await base.watch(id) }

  /// Removes the cache's entry after the store's reply, and also if the reply was lost, because the store may have
  /// executed the command.
  private func invalidating<T>(
    _ id: RecordID, _ body: () async throws(StoreError) -> T
  ) async throws(StoreError) -> T {
    defer { cache.invalidate(id) }
    return try await body()
  }
}
