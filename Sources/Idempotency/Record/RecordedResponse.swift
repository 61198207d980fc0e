import NIOCore
import Wire

/// A recorded response: status, field lines, body and trailers, without anything that belongs to one hop.
///
/// It is a class, so that it is not copied by every step that uses it.
public final class RecordedResponse: Sendable {
  public let status: Int
  /// The field lines as they are sent, each ended by CRLF, behind the stamp of the age if there is one (`AgeStamp`). They
  /// contain no framing field, except `Content-Length` if a response to HEAD or a 304 had one.
  public let fields: ByteBuffer
  public let body: ByteBuffer
  /// The trailer lines in the same form, which are usually empty.
  public let trailers: ByteBuffer

  public init(status: Int, fields: ByteBuffer, body: ByteBuffer, trailers: ByteBuffer = ByteBuffer()) {
    assert(
      fields.isFieldLines && trailers.isFieldLines, "RecordedResponse: lines that a store would not give back"
    )
    self.status = status
    self.fields = fields
    self.body = body
    self.trailers = trailers
  }

  /// Creates a response from the parts in a store; `nil` if they are damaged, so that they are no response. Earlier
  /// versions also recorded fields that describe one moment; these are removed, except for the stamp of an age.
  public convenience init?(stored status: Int, fields: ByteBuffer, body: ByteBuffer, trailers: ByteBuffer) {
    guard 200...999 ~= status, fields.isFieldLines, trailers.isFieldLines else { return nil }
    self.init(
      status: status, fields: AgeStamp.keeping(fields), body: body,
      trailers: trailers.fieldLines(without: .momentary))
  }
}

extension RecordedResponse: Equatable {
  public static func == (left: RecordedResponse, right: RecordedResponse) -> Bool {
    left.status == right.status && left.fields == right.fields && left.body == right.body
      && left.trailers == right.trailers
  }
}

/// The recorded part of a final outcome.
public enum Outcome: Sendable, Equatable {
  /// The whole response.
  case whole(RecordedResponse)
  /// The response was too large, or its completeness was unknown. Only the values that help a client to find the result
  /// are kept.
  case statusOnly(status: Int, location: String?)
  /// Either of the two in a store's form, compressed or sealed. Outside the store only operators meet this case: it is
  /// sealed, and they do not know the client's key.
  case encoded(EncodedOutcome)

  public var status: Int {
    switch self {
    case .whole(let response): response.status
    case .statusOnly(let status, _): status
    case .encoded(let outcome): outcome.status
    }
  }

  /// The bytes that it holds.
  public var size: Int {
    switch self {
    case .whole(let response):
      response.fields.readableBytes + response.body.readableBytes + response.trailers.readableBytes
    case .statusOnly(_, let location): location?.utf8.count ?? 0
    case .encoded(let outcome): outcome.response?.readableBytes ?? 0
    }
  }

  /// The outcome as it is recorded where there is no room for its response.
  public var withoutResponse: Outcome {
    switch self {
    case .whole(let response):
      var location: String?
      response.fields.eachFieldLine { name, value in
        if name == "location" { location = value }
      }
      return .statusOnly(status: response.status, location: location)
    case .encoded(let outcome):
      return .encoded(EncodedOutcome(status: outcome.status, location: outcome.location, response: nil))
    case .statusOnly: return self
    }
  }
}

/// A completed record.
///
/// It is a class, so that it is not copied into the frame of every step that uses it.
public final class CompletedRecord: Sendable {
  public let outcome: Outcome
  public let recordedAt: StoreInstant
  /// The end of retention, after which only the tombstone is left.
  public let expiresAt: StoreInstant
  /// The time left until then, by the store's clock at the moment of its reply. A cache keeps the record no longer.
  public let remaining: Milliseconds
  /// The number of the attempt that completed the record.
  public let attempt: Int
  /// The size of the response as the store holds it, in bytes, where it was read from a store that has encoded it; else
  /// `nil`. It says nothing about the outcome, and does not count when records are compared.
  public let storedBytes: Int?

  public init(
    outcome: Outcome, recordedAt: StoreInstant, expiresAt: StoreInstant, remaining: Milliseconds,
    attempt: Int, storedBytes: Int? = nil
  ) {
    self.outcome = outcome
    self.recordedAt = recordedAt
    self.expiresAt = expiresAt
    self.remaining = remaining
    self.attempt = attempt
    self.storedBytes = storedBytes
  }
}

extension CompletedRecord: Equatable {
  public static func == (left: CompletedRecord, right: CompletedRecord) -> Bool {
    left.outcome == right.outcome && left.recordedAt == right.recordedAt && left.expiresAt == right.expiresAt
      && left.remaining == right.remaining && left.attempt == right.attempt
  }
}
