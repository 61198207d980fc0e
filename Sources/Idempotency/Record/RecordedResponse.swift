import NIOCore
import Wire

/// An answer as it is kept: status, field lines, body and trailers, with nothing in it that belongs to one hop.
///
/// A class, so that it is not copied by every step that has it.
public final class RecordedResponse: Sendable {
  public let status: Int
  /// Field lines as they are sent, each ended by CRLF; no framing field, except `Content-Length` where an answer
  /// to HEAD or a 304 told one.
  public let fields: ByteBuffer
  public let body: ByteBuffer
  /// Trailer lines in the same form, mostly empty.
  public let trailers: ByteBuffer

  public init(status: Int, fields: ByteBuffer, body: ByteBuffer, trailers: ByteBuffer = ByteBuffer()) {
    self.status = status
    self.fields = fields
    self.body = body
    self.trailers = trailers
  }

  /// A response as a store holds it. Earlier versions also recorded fields that speak of one moment; they are dropped.
  public convenience init(stored status: Int, fields: ByteBuffer, body: ByteBuffer, trailers: ByteBuffer) {
    self.init(
      status: status, fields: fields.fieldLines(without: .momentary), body: body,
      trailers: trailers.fieldLines(without: .momentary))
  }
}

extension RecordedResponse: Equatable {
  public static func == (left: RecordedResponse, right: RecordedResponse) -> Bool {
    left.status == right.status && left.fields == right.fields && left.body == right.body
      && left.trailers == right.trailers
  }
}

/// What is kept of a final outcome.
public enum Outcome: Sendable, Equatable {
  /// The whole answer.
  case kept(RecordedResponse)
  /// The answer was too large, or its end could not be told: only what a client needs to find the result.
  case notKept(status: Int, location: String?)

  public var status: Int {
    switch self {
    case .kept(let response): response.status
    case .notKept(let status, _): status
    }
  }
}

/// A completed record.
///
/// A class, so that it is not copied into the frame of every step that has it.
public final class CompletedRecord: Sendable {
  public let outcome: Outcome
  public let recordedAt: StoreInstant
  /// When retention ends and only the tombstone is left.
  public let expiresAt: StoreInstant
  /// What is left until then, by the store's clock at the moment of its reply. A cache keeps it no longer.
  public let remaining: Milliseconds
  public let attempt: Int

  public init(
    outcome: Outcome, recordedAt: StoreInstant, expiresAt: StoreInstant, remaining: Milliseconds, attempt: Int
  ) {
    self.outcome = outcome
    self.recordedAt = recordedAt
    self.expiresAt = expiresAt
    self.remaining = remaining
    self.attempt = attempt
  }
}

extension CompletedRecord: Equatable {
  public static func == (left: CompletedRecord, right: CompletedRecord) -> Bool {
    left.outcome == right.outcome && left.recordedAt == right.recordedAt && left.expiresAt == right.expiresAt
      && left.remaining == right.remaining && left.attempt == right.attempt
  }
}
