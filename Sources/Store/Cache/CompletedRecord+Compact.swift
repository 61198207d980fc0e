import Idempotency
import NIOCore

extension CompletedRecord {
  /// The record without memory that its answer only shares, where it is so large that a cache keeps its buffers.
  var compact: CompletedRecord {
    guard case .kept(let response) = outcome, response.bytes > CacheLog.largestInside else { return self }
    let compact = RecordedResponse(
      status: response.status, fields: response.fields.compact, body: response.body.compact,
      trailers: response.trailers.compact)
    return CompletedRecord(
      outcome: .kept(compact), recordedAt: recordedAt, expiresAt: expiresAt, remaining: remaining,
      attempt: attempt)
  }
}

extension RecordedResponse {
  /// Of fields, body and trailers.
  var bytes: Int { fields.readableBytes + body.readableBytes + trailers.readableBytes }
}

extension ByteBuffer {
  /// A short answer may be a slice of a large read.
  fileprivate var compact: ByteBuffer {
    guard readableBytes > 0 else { return ByteBuffer() }
    // Below that a copy costs more than it saves.
    guard storageCapacity > readableBytes + readableBytes / 4 + 64 else { return self }
    return ByteBuffer(bytes: readableBytesView)
  }
}
