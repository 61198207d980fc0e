import Idempotency
import NIOCore
import Testing

@testable import Store

/// The entries that the cache keeps, and those that it must not keep: each race as the steps in which it happens.
struct LocalCacheTests {
  private static let start = BootInstant(nanoseconds: 1_000_000_000)

  private let id = Samples.id()
  private let fingerprint = Samples.fingerprint()

  private func record(
    bodyBytes: Int = 100, remaining: Milliseconds = .seconds(60)
  ) -> CompletedRecord {
    let response = Samples.response(body: String(repeating: "x", count: bodyBytes))
    return record(.whole(response), remaining: remaining)
  }

  private func record(_ outcome: Outcome, remaining: Milliseconds = .seconds(60)) -> CompletedRecord {
    CompletedRecord(
      outcome: outcome,
      recordedAt: StoreInstant(milliseconds: 5), expiresAt: StoreInstant(milliseconds: 60_005),
      remaining: remaining, attempt: 1)
  }

  /// Fills as one step, from ticket to entry.
  private func fill(_ cache: LocalCache, _ id: RecordID? = nil, _ record: CompletedRecord? = nil) {
    let id = id ?? self.id
    cache.fill(id, fingerprint, record ?? self.record(), with: cache.ticket(for: id, now: Self.start))
  }

  @Test func `an outcome is found in the cache, and a miss is counted when the store is read`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == nil)
    #expect(cache.statistics.misses == 0)
    _ = cache.ticket(for: id, countsMiss: true)
    #expect(cache.statistics.misses == 1)
    fill(cache)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == .taken(.completed(record())))
    #expect(cache.outcome(Samples.id(), fingerprint, now: Self.start) == nil)
    #expect(cache.statistics.hits == 1)
    #expect(cache.statistics.misses == 1)
    #expect(cache.statistics.entries == 1)
  }

  @Test func `a response that was not kept is cached as such`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    let record = record(.statusOnly(status: 201, location: "/v1/orders/7"))
    fill(cache, id, record)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == .taken(.completed(record)))
  }

  @Test func `another payload and another recipe are recognised in the cache`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    fill(cache)
    #expect(cache.outcome(id, Samples.fingerprint(), now: Self.start) == .mismatch)
    let raw = Fingerprint(recipe: Recipe(body: .raw), digest: fingerprint.digest)
    #expect(cache.outcome(id, raw, now: Self.start) == .otherRecipe(Recipe()))
  }

  @Test func `an entry expires with the time that was left when the store was read`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    fill(cache, id, record(remaining: 500))
    guard case .taken(.completed(let record)) = cache.outcome(id, fingerprint, now: Self.start + 400) else {
      Issue.record("no hit")
      return
    }
    #expect(record.remaining == 100)
    #expect(cache.outcome(id, fingerprint, now: Self.start + 500) == nil)
    #expect(cache.statistics.entries == 0)
    #expect(cache.statistics.bytes == 0)
  }

  @Test func `a fill that was overtaken by an invalidation is dropped`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    let ticket = cache.ticket(for: id, now: Self.start)
    // The store replies `completed`; before that reply arrives, the record is forgotten.
    cache.invalidate(id)
    cache.fill(id, fingerprint, record(), with: ticket)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == nil)
    fill(cache)
    #expect(cache.outcome(id, fingerprint, now: Self.start) != nil)
  }

  @Test func `an invalidation removes its entry alone`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    let other = Samples.id()
    fill(cache)
    fill(cache, other)
    cache.invalidate(id)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == nil)
    #expect(cache.outcome(other, fingerprint, now: Self.start) != nil)
  }

  @Test func `while the subscription is down nothing is returned or cached`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    fill(cache)
    let before = cache.ticket(for: id, now: Self.start)
    cache.subscriptionDown()
    #expect(cache.outcome(id, fingerprint, now: Self.start) == nil)
    #expect(cache.ticket(for: id) == nil)
    cache.fill(id, fingerprint, record(), with: before)
    #expect(cache.statistics.entries == 0)
    cache.subscriptionUp(now: Self.start)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == nil)
    // Asked before the subscription broke: an invalidation may have been missed since.
    cache.fill(id, fingerprint, record(), with: before)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == nil)
    fill(cache)
    #expect(cache.outcome(id, fingerprint, now: Self.start) != nil)
  }

  @Test func `what a process that stood still may have missed is not returned`() {
    let cache = LocalCache(capacityBytes: 1 << 20, isSubscribed: false)
    cache.subscriptionUp(now: Self.start)
    fill(cache)
    #expect(cache.outcome(id, fingerprint, now: Self.start + 1999) != nil)
    #expect(cache.outcome(id, fingerprint, now: Self.start + 2000) == nil)
    // A sign of life from before is no sign of what has been published since.
    cache.heardInvalidations(from: Self.start + 1000)
    #expect(cache.outcome(id, fingerprint, now: Self.start + 2999) != nil)
    #expect(cache.outcome(id, fingerprint, now: Self.start + 5000) == nil)
    cache.heardInvalidations(from: Self.start + 5000)
    #expect(cache.outcome(id, fingerprint, now: Self.start + 5000) != nil)
  }

  @Test func `a cache that depends on pushes begins disabled`() {
    let cache = LocalCache(capacityBytes: 1 << 20, isSubscribed: false)
    #expect(cache.ticket(for: id) == nil)
    cache.subscriptionUp(now: Self.start)
    fill(cache)
    #expect(cache.outcome(id, fingerprint, now: Self.start) != nil)
  }

  @Test func `a resubscription without a break before it empties the cache`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    fill(cache)
    cache.subscriptionUp()
    #expect(cache.outcome(id, fingerprint, now: Self.start) == nil)
  }

  @Test func `the cache stays within its bytes, and spares what is used`() {
    let capacity = 64 << 10
    let cache = LocalCache(capacityBytes: capacity)
    fill(cache, id, record(bodyBytes: 1000))
    for _ in 0..<500 {
      #expect(cache.outcome(id, fingerprint, now: Self.start) != nil)
      fill(cache, Samples.id(), record(bodyBytes: 1000))
      #expect(cache.statistics.bytes <= capacity)
    }
    let statistics = cache.statistics
    #expect(statistics.evictions == 501 - statistics.entries)
    #expect(statistics.entries > 30)
  }

  @Test func `a large cache is bounded over all its shards`() {
    let capacity = 64 << 20
    let cache = LocalCache(capacityBytes: capacity)
    let record = record(bodyBytes: 1 << 20)
    for _ in 0..<200 { fill(cache, Samples.id(), record) }
    #expect(cache.statistics.bytes <= capacity)
    #expect(cache.statistics.entries >= 32)
  }

  @Test func `a response larger than its shard is not cached, and evicts nothing`() {
    let cache = LocalCache(capacityBytes: 64 << 10)
    fill(cache)
    fill(cache, Samples.id(), record(bodyBytes: 128 << 10))
    #expect(cache.statistics.entries == 1)
    #expect(cache.statistics.evictions == 0)
  }

  @Test func `a refill replaces its entry`() {
    let cache = LocalCache(capacityBytes: 1 << 20)
    fill(cache)
    let bytes = cache.statistics.bytes
    fill(cache)
    #expect(cache.statistics.entries == 1)
    #expect(cache.statistics.bytes == bytes)
  }

  @Test func `a slice does not hold the memory of the buffer it came from`() {
    var whole = ByteBuffer(repeating: 7, count: 1 << 20)
    let body = whole.readSlice(length: 100)!
    let record = record(.whole(RecordedResponse(status: 200, fields: ByteBuffer(), body: body)))
    let cache = LocalCache(capacityBytes: 1 << 20)
    fill(cache, id, record)
    #expect(cache.statistics.bytes < 2048)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == .taken(.completed(record)))
  }

  @Test func `a cache without capacity keeps nothing`() {
    let cache = LocalCache(capacityBytes: 0)
    #expect(cache.ticket(for: id) == nil)
    fill(cache)
    cache.invalidate(id)
    cache.subscriptionUp()
    fill(cache)
    #expect(cache.outcome(id, fingerprint, now: Self.start) == nil)
    #expect(cache.statistics == CacheStatistics())
  }
}
