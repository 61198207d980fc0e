import Idempotency
import NIOCore
import Synchronization
import Wire

/// The head of one cached outcome, before its bytes. Bitwise copyable: the log reuses memory without deinitialising it.
struct CacheEntry: BitwiseCopyable {
  enum Content: BitwiseCopyable {
    /// The response's fields, body and trailers, which follow the head.
    case response
    case status
    /// A status, and the location in the place of the fields.
    case statusAndLocation
  }

  let id: RecordID
  let digest: Digest256
  let expiry: BootInstant
  let recordedAt: StoreInstant
  let expiresAt: StoreInstant
  let attempt: Int
  /// The entry's size in the log, with head and rounding, in bytes.
  let length: Int
  let status: Int32
  let fields: UInt32
  let body: UInt32
  let trailers: UInt32
  /// The index of its recipe among those of the log.
  let recipe: UInt8
  let content: Content
  /// Whether the entry was removed. Its space is freed when it is the oldest.
  var isDead = false

  init(
    _ id: RecordID, _ digest: Digest256, recipe: UInt8, _ record: CompletedRecord, expiry: BootInstant
  ) {
    self.id = id
    self.digest = digest
    self.recipe = recipe
    self.expiry = expiry
    recordedAt = record.recordedAt
    expiresAt = record.expiresAt
    attempt = record.attempt
    status = Int32(truncatingIfNeeded: record.outcome.status)
    let sizes: (fields: Int, body: Int, trailers: Int)
    switch record.outcome {
    case .whole(let response):
      content = .response
      sizes = (
        response.fields.readableBytes, response.body.readableBytes, response.trailers.readableBytes
      )
    case .statusOnly(_, let location):
      content = location == nil ? .status : .statusAndLocation
      sizes = (location?.utf8.count ?? 0, 0, 0)
    case .encoded: invariantBroken("an encoded outcome")
    }
    fields = UInt32(sizes.fields)
    body = UInt32(sizes.body)
    trailers = UInt32(sizes.trailers)
    length = CacheLog.rounded(MemoryLayout<CacheEntry>.stride + sizes.fields + sizes.body + sizes.trailers)
  }

  /// Whether the store may no longer hold the outcome. The millisecond of its reply may have begun before ours.
  func isExpired(now: BootInstant) -> Bool { now + 1 >= expiry }

  /// Copies the outcome's bytes to `memory`, which follows the head.
  func write(_ outcome: Outcome, to memory: UnsafeMutableRawPointer) {
    switch outcome {
    case .whole(let response):
      invariant(
        response.fields.readableBytes == Int(fields) && response.body.readableBytes == Int(body)
          && response.trailers.readableBytes == Int(trailers),
        "another outcome is copied than was measured")
      response.fields.copy(to: memory)
      response.body.copy(to: memory + Int(fields))
      response.trailers.copy(to: memory + Int(fields) + Int(body))
    case .statusOnly(_, var location?):
      location.withUTF8 { text in
        invariant(text.count == Int(fields), "another location is copied than was measured")
        if let start = text.baseAddress { memory.copyMemory(from: start, byteCount: text.count) }
      }
    case .statusOnly(_, nil), .encoded: break
    }
  }

  func outcome(from memory: UnsafeMutableRawPointer) -> Outcome {
    invariant(
      Int(fields) + Int(body) + Int(trailers) <= length - MemoryLayout<CacheEntry>.stride,
      "an entry is shorter than its parts")
    switch content {
    case .response:
      let (fields, body, trailers) = (Int(fields), Int(body), Int(trailers))
      var bytes = ByteBufferAllocator().buffer(capacity: fields + body + trailers)
      bytes.writeBytes(UnsafeRawBufferPointer(start: memory, count: fields + body + trailers))
      return .whole(
        RecordedResponse(
          status: Int(status), fields: bytes.slice(of: fields), body: bytes.slice(of: body),
          trailers: bytes.slice(of: trailers)))
    case .status:
      return .statusOnly(status: Int(status), location: nil)
    case .statusAndLocation:
      let text = UnsafeRawBufferPointer(start: memory, count: Int(fields))
      return .statusOnly(status: Int(status), location: String(decoding: text, as: UTF8.self))
    }
  }
}

extension ByteBuffer {
  fileprivate func copy(to memory: UnsafeMutableRawPointer) {
    withUnsafeReadableBytes { bytes in
      if let start = bytes.baseAddress { memory.copyMemory(from: start, byteCount: bytes.count) }
    }
  }

  /// The next bytes; an empty buffer, which does not retain this one's memory, if there are none.
  fileprivate mutating func slice(of length: Int) -> ByteBuffer {
    length > 0 ? readSlice(length: length) ?? ByteBuffer() : ByteBuffer()
  }
}

/// The place of each record's entry in the log: a hash table with open addressing and linear probing. Its size is
/// fixed, so that it never pauses to grow. Pure.
struct CacheIndex {
  /// The slots: the hash in the upper half, and the place plus one in the lower half; 0 in an empty slot.
  private var words: [UInt64]
  private let mask: Int
  private(set) var count = 0

  /// - Parameter slots: Their number, a power of two.
  init(slots: Int) {
    invariant(slots > 0 && slots & (slots - 1) == 0, "the slots of an index are no power of two")
    words = Array(repeating: 0, count: slots)
    mask = slots - 1
  }

  /// Whether seven eighths of the slots are used, beyond which look-ups would take too long.
  var isFull: Bool { count >= words.count / 8 * 7 }

  func find(_ hash: UInt32, where isWanted: (_ place: UInt32) -> Bool) -> UInt32? {
    var slot = Int(hash) & mask
    while words[slot] != 0 {
      let place = UInt32(truncatingIfNeeded: words[slot] - 1)
      if UInt32(truncatingIfNeeded: words[slot] >> 32) == hash, isWanted(place) { return place }
      slot = (slot + 1) & mask
    }
    return nil
  }

  /// Adds a place. The index must not be full, and must not contain the place.
  mutating func insert(_ hash: UInt32, _ place: UInt32) {
    invariant(!isFull, "an entry is added to a full index")
    var slot = Int(hash) & mask
    while words[slot] != 0 { slot = (slot + 1) & mask }
    words[slot] = UInt64(hash) << 32 | UInt64(place) + 1
    count += 1
  }

  /// Removes a place, which the index must contain, and moves up the slots that were probed past it.
  mutating func remove(_ hash: UInt32, _ place: UInt32) {
    let word = UInt64(hash) << 32 | UInt64(place) + 1
    var hole = Int(hash) & mask
    while words[hole] != word {
      invariant(words[hole] != 0, "removed what is not there")
      hole = (hole + 1) & mask
    }
    var next = (hole + 1) & mask
    while words[next] != 0 {
      let home = Int(words[next] >> 32) & mask
      if (next - home) & mask >= (next - hole) & mask {
        words[hole] = words[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    words[hole] = 0
    count -= 1
  }

  mutating func removeAll() {
    for slot in words.indices { words[slot] = 0 }
    count = 0
  }
}

/// One part of the cache, with its own lock.
final class CacheShard: Sendable {
  private struct State: ~Copyable {
    var log: CacheLog
    /// The number of invalidations. A fill that began before the latest one is dropped.
    var generation: UInt64 = 0
    var isBypassed: Bool
    var counts = CacheStatistics()
  }

  private let state: Mutex<State>

  init(capacityBytes: Int, isBypassed: Bool) {
    state = Mutex(State(log: CacheLog(capacityBytes: capacityBytes), isBypassed: isBypassed))
  }

  func outcome(
    _ id: RecordID, _ fingerprint: Fingerprint, before end: BootInstant,
    now: @autoclosure @Sendable () -> BootInstant
  ) -> ClaimOutcome? {
    state.withLock { state -> ClaimOutcome? in
      guard let outcome = state.log.use(id, fingerprint, before: end, now: now()) else { return nil }
      state.counts.hits += 1
      return outcome
    }
  }

  func generation(countsMiss: Bool) -> UInt64? {
    state.withLock { state in
      if countsMiss { state.counts.misses += 1 }
      return state.isBypassed ? nil : state.generation
    }
  }

  func fill(
    _ id: RecordID, _ fingerprint: Fingerprint, _ record: CompletedRecord, expiry: BootInstant,
    _ generation: UInt64
  ) {
    state.withLock { state in
      invariant(generation <= state.generation, "an outcome is cached by a ticket of another shard")
      guard !state.isBypassed, state.generation == generation else { return }
      state.log.put(id, fingerprint, record, expiry: expiry)
    }
  }

  func invalidate(_ id: RecordID) {
    state.withLock { state in
      state.generation += 1
      state.log.remove(id)
    }
  }

  /// Empties the shard. Nothing is cached while `isBypassed` is true.
  func restart(isBypassed: Bool) {
    state.withLock { state in
      state.generation += 1
      state.isBypassed = isBypassed
      state.log.removeAll()
    }
  }

  var statistics: CacheStatistics {
    state.withLock { state in
      var statistics = state.counts
      statistics.evictions = state.log.evictions
      statistics.entries = state.log.count
      statistics.bytes = state.log.bytes
      return statistics
    }
  }
}
