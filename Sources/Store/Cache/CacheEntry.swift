import Idempotency
import NIOCore

/// One kept outcome.
struct CacheEntry: Sendable {
  /// What an entry costs beside its answer's bytes: its slot, its place in the index, three buffers.
  static let overhead = 512

  let fingerprint: Fingerprint
  private let record: CompletedRecord
  private let expiry: BootInstant
  let bytes: Int

  /// - Parameter askedAt: before the store was asked. What was left by its clock counts from here, so that the
  ///   entry never outlives the record.
  init(_ fingerprint: Fingerprint, _ record: CompletedRecord, askedAt: BootInstant) {
    var record = record
    if case .kept(var response) = record.outcome {
      response.fields = Self.compact(response.fields)
      response.body = Self.compact(response.body)
      response.trailers = Self.compact(response.trailers)
      record.outcome = .kept(response)
    }
    self.fingerprint = fingerprint
    self.record = record
    expiry = askedAt + record.remaining
    bytes = Self.overhead + Self.size(of: record.outcome)
  }

  /// Whether the store may no longer hold the outcome. Its clock counts whole milliseconds, and may have begun the
  /// one in which it was asked before we did.
  func isExpired(now: BootInstant) -> Bool { now + 1 >= expiry }

  /// What the store would answer to a claim.
  func answer(_ fingerprint: Fingerprint, now: BootInstant) -> ClaimOutcome {
    guard self.fingerprint.recipe == fingerprint.recipe else { return .otherRecipe(self.fingerprint.recipe) }
    guard self.fingerprint.digest == fingerprint.digest else { return .mismatch }
    var record = record
    record.remaining = expiry - now
    return .taken(.completed(record))
  }

  private static func size(of outcome: Outcome) -> Int {
    switch outcome {
    case .kept(let response):
      response.fields.storageCapacity + response.body.storageCapacity + response.trailers.storageCapacity
    case .notKept(_, let location): location?.utf8.count ?? 0
    }
  }

  /// The buffer without memory that it only shares: a short answer may be a slice of a large read.
  private static func compact(_ buffer: ByteBuffer) -> ByteBuffer {
    guard buffer.readableBytes > 0 else { return ByteBuffer() }
    // Below that a copy costs more than it saves.
    guard buffer.storageCapacity > buffer.readableBytes + buffer.readableBytes / 4 + 64 else { return buffer }
    return ByteBuffer(bytes: buffer.readableBytesView)
  }
}
