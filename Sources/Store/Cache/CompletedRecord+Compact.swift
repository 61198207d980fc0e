import Idempotency
import NIOCore

extension CompletedRecord {
  /// The record without memory that its answer only shares, where it is so large that a cache keeps its buffers.
  var compact: CompletedRecord {
    guard case .kept(var response) = outcome, response.bytes > CacheLog.largestInside else { return self }
    response.fields = response.fields.compact
    response.body = response.body.compact
    response.trailers = response.trailers.compact
    return CompletedRecord(
      outcome: .kept(response), recordedAt: recordedAt, expiresAt: expiresAt, remaining: remaining,
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
