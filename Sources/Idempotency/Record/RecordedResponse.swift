import NIOCore
import Wire

/// An answer as it is kept: status, field lines, body and trailers, with nothing in it that belongs to one hop.
package struct RecordedResponse: Sendable, Equatable {
  package var status: Int
  /// Field lines as they are sent, each ended by CRLF; no framing field, except `Content-Length` where an answer
  /// to HEAD or a 304 told one.
  package var fields: ByteBuffer
  package var body: ByteBuffer
  /// Trailer lines in the same form, mostly empty.
  package var trailers: ByteBuffer

  package init(status: Int, fields: ByteBuffer, body: ByteBuffer, trailers: ByteBuffer = ByteBuffer()) {
    self.status = status
    self.fields = fields
    self.body = body
    self.trailers = trailers
  }
}

/// What is kept of a final outcome.
package enum Outcome: Sendable, Equatable {
  /// The whole answer.
  case kept(RecordedResponse)
  /// The answer was too large, or its end could not be told: only what a client needs to find the result.
  case notKept(status: Int, location: String?)

  package var status: Int {
    switch self {
    case .kept(let response): response.status
    case .notKept(let status, _): status
    }
  }
}

/// A completed record.
package struct CompletedRecord: Sendable, Equatable {
  package var outcome: Outcome
  package var recordedAt: StoreInstant
  /// When retention ends and only the tombstone is left.
  package var expiresAt: StoreInstant
  /// What is left until then, by the store's clock at the moment of its reply. A cache keeps it no longer.
  package var remaining: Milliseconds
  package var attempt: Int

  package init(
    outcome: Outcome, recordedAt: StoreInstant, expiresAt: StoreInstant, remaining: Milliseconds, attempt: Int
  ) {
    self.outcome = outcome
    self.recordedAt = recordedAt
    self.expiresAt = expiresAt
    self.remaining = remaining
    self.attempt = attempt
  }
}
