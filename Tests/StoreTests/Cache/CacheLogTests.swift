import NIOCore
import TestSupport
import Testing

@testable import Idempotency
@testable import Store

/// The ring under the cache, beside a dictionary that does the same without a bound.
struct CacheLogTests {
  private static let start = BootInstant(nanoseconds: 1_000_000_000)
  private static let later = start + .seconds(600)

  private let fingerprint = Samples.fingerprint()

  /// A response that begins, goes on and ends unlike that of another number.
  private func record(_ number: Int, bodyBytes: Int, trailers: String = "") -> CompletedRecord {
    var body = ByteBuffer(repeating: UInt8(truncatingIfNeeded: number), count: bodyBytes)
    if bodyBytes >= 8 {
      body.setInteger(number, at: 0)
      body.setInteger(number, at: bodyBytes - 8)
    }
    let response = RecordedResponse(
      status: 200 + number % 100, fields: ByteBuffer(string: "X-Number: \(number)\r\n"), body: body,
      trailers: ByteBuffer(string: trailers))
    return CompletedRecord(
      outcome: .whole(response), recordedAt: StoreInstant(milliseconds: Int64(number)),
      expiresAt: StoreInstant(milliseconds: Int64(number) + 600_000), remaining: .seconds(600),
      attempt: number)
  }

  private func location(_ number: Int) -> CompletedRecord {
    CompletedRecord(
      outcome: .statusOnly(status: 201, location: number % 2 == 0 ? "/v1/orders/\(number)" : nil),
      recordedAt: StoreInstant(milliseconds: 1), expiresAt: StoreInstant(milliseconds: 600_001),
      remaining: .seconds(600), attempt: number)
  }

  @Test func `digests of members neither fill the cache with recipes nor decide on a payload`() {
    var log = CacheLog(capacityBytes: 1 << 20)
    let now = Self.start
    func explained(_ number: Int, digest: Digest256? = nil) -> Fingerprint {
      let members = MemberDigests(
        members: [MemberDigests.Member(name: 1, value: UInt32(number))], isCut: false)
      return Fingerprint(
        recipe: fingerprint.recipe.explaining(members), digest: digest ?? fingerprint.digest)
    }
    let first = Samples.id()
    log.put(first, explained(0), location(0), expiry: Self.later)
    for number in 1..<400 { log.put(Samples.id(), explained(number), location(number), expiry: Self.later) }
    #expect(log.count == 400)
    #expect(log.use(first, explained(7), now: now) != nil)
    #expect(log.use(first, fingerprint, now: now) != nil)
    // The store has what explains it.
    let other = Digest256.sha256(of: [1])
    #expect(log.use(first, explained(7, digest: other), now: now) == nil)
    #expect(
      log.use(first, Fingerprint(recipe: fingerprint.recipe, digest: other), now: now) == .mismatch)
  }

  /// The outcome found is the one that was put in last, whatever was put in, taken out, moved or evicted since: over
  /// many laps of the ring, with entries from the smallest to half the ring.
  @Test(arguments: [16 << 10, 64 << 10, 160 << 10], [1, 2, 3, 4] as [UInt64])
  func `every lookup returns the last entry put in`(capacity: Int, seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var log = CacheLog(capacityBytes: capacity)
    var model: [RecordID: CompletedRecord] = [:]
    let ids = (0..<120).map { _ in Samples.id() }
    var hits = 0
    for step in 0..<6_000 {
      let id = ids.randomElement(using: &random)!
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        log.remove(id)
        model[id] = nil
      case 1...4:
        let record =
          switch Int.random(in: 0..<12, using: &random) {
          case 0: location(step)
          case 1: record(step, bodyBytes: .random(in: 0..<capacity / 2, using: &random), trailers: "X: y\r\n")
          default: record(step, bodyBytes: .random(in: 0..<1500, using: &random))
          }
        log.put(id, fingerprint, record, expiry: Self.later)
        model[id] = record
      default:
        guard let response = log.use(id, fingerprint, now: Self.start) else { continue }
        hits += 1
        #expect(response == model[id].map { .taken(.completed($0)) }, "step \(step)")
      }
      #expect(log.bytes <= capacity)
      #expect(log.count <= model.count)
    }
    #expect(hits > 200)
    #expect(log.evictions > 200)
    for id in ids { log.remove(id) }
    #expect(log.count == 0)
    #expect(log.bytes == 0)
  }

  @Test func `the oldest entries are dropped first, and recently used ones stay`() {
    let capacity = 64 << 10
    var log = CacheLog(capacityBytes: capacity)
    let ids = (0..<200).map { _ in Samples.id() }
    for (number, id) in ids.enumerated() {
      log.put(id, fingerprint, record(number, bodyBytes: 1000), expiry: Self.later)
      if number == 30 { #expect(log.use(ids[0], fingerprint, now: Self.start) != nil) }
      if number == 60 { break }
    }
    #expect(log.use(ids[0], fingerprint, now: Self.start) != nil, "used when half a ring old")
    #expect(log.use(ids[1], fingerprint, now: Self.start) == nil, "never used")
    #expect(log.use(ids[60], fingerprint, now: Self.start) != nil)
  }

  @Test func `a large entry in use stays in place, and evicts nothing`() {
    let capacity = 64 << 10
    var log = CacheLog(capacityBytes: capacity)
    let (small, large) = (Samples.id(), Samples.id())
    log.put(small, fingerprint, record(1, bodyBytes: 100), expiry: Self.later)
    log.put(large, fingerprint, record(2, bodyBytes: capacity * 5 / 8), expiry: Self.later)
    let bytes = log.bytes
    for _ in 0..<5 { #expect(log.use(large, fingerprint, now: Self.start) != nil) }
    #expect(log.bytes == bytes)
    #expect(log.use(small, fingerprint, now: Self.start) != nil)
  }

  @Test func `an expired entry is not returned, and its room is reclaimed`() {
    var log = CacheLog(capacityBytes: 64 << 10)
    let id = Samples.id()
    log.put(id, fingerprint, record(1, bodyBytes: 100), expiry: Self.start + 10)
    #expect(log.use(id, fingerprint, now: Self.start) != nil)
    #expect(log.use(id, fingerprint, now: Self.start + 10) == nil)
    #expect(log.bytes == 0)
  }

  @Test func `more recipes than can be numbered empty the log`() {
    var log = CacheLog(capacityBytes: 1 << 20)
    for number in 0..<600 {
      let recipe = Recipe(headers: ["x-\(number)"])
      let mine = Fingerprint(recipe: recipe, digest: fingerprint.digest)
      let id = Samples.id()
      let record = record(number, bodyBytes: 10)
      log.put(id, mine, record, expiry: Self.later)
      #expect(log.use(id, mine, now: Self.start) == .taken(.completed(record)))
      #expect(log.use(id, fingerprint, now: Self.start) == .otherRecipe(recipe))
    }
    #expect(log.count == 600 - 512)
  }
}

struct CacheIndexTests {
  /// Hashes from so few values that chains form, cross and wrap around the table's end.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `every entry that was put in and not removed is found`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var index = CacheIndex(slots: 64)
    var places: [UInt32: UInt32] = [:]
    for _ in 0..<20_000 {
      let place = UInt32.random(in: 0..<500, using: &random)
      if let hash = places[place] {
        index.remove(hash, place)
        places[place] = nil
      } else if !index.isFull {
        let hash = UInt32.random(in: 0..<8, using: &random) &* 0x0900_0007
        index.insert(hash, place)
        places[place] = hash
      }
      #expect(index.count == places.count)
      #expect(places.allSatisfy { place, hash in index.find(hash) { $0 == place } == place })
      #expect(index.find(.random(in: .min ... .max, using: &random)) { !places.keys.contains($0) } == nil)
    }
  }
}
