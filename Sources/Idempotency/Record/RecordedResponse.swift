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

/// An outcome as a store holds it where responses are compressed or sealed: bytes that mean nothing but to the store's
/// codec, and if they are sealed, without the store's secrets.
///
/// Only the status stays readable. A class, so that it is not copied by every step that uses it.
public final class EncodedOutcome: Sendable {
  public let status: Int
  /// The location as text without spaces, kept beside the response for a store that may evict it; `nil` for none.
  public let location: String?
  /// The encoded response; `nil` if the response was not kept.
  public let response: ByteBuffer?

  public init(status: Int, location: String?, response: ByteBuffer?) {
    self.status = status
    self.location = location
    self.response = response
  }
}

extension EncodedOutcome: Equatable {
  public static func == (left: EncodedOutcome, right: EncodedOutcome) -> Bool {
    left.status == right.status && left.location == right.location && left.response == right.response
  }
}

extension Standing {
  /// The outcome of a completed record that is still encoded; `nil` for any other.
  public var encodedOutcome: EncodedOutcome? {
    guard case .completed(let record) = self, case .encoded(let outcome) = record.outcome else { return nil }
    return outcome
  }
}

extension ClaimOutcome {
  /// The outcome of a completed record that is still encoded; `nil` for any other.
  public var encodedOutcome: EncodedOutcome? {
    guard case .taken(let standing) = self else { return nil }
    return standing.encodedOutcome
  }
}

extension CompletedRecord {
  /// The record with its outcome in another form.
  ///
  /// - Parameter storedBytes: The size that its response has in the store.
  public func with(_ outcome: Outcome, storedBytes: Int? = nil) -> CompletedRecord {
    CompletedRecord(
      outcome: outcome, recordedAt: recordedAt, expiresAt: expiresAt, remaining: remaining, attempt: attempt,
      storedBytes: storedBytes)
  }
}

/// The age that a recorded response had when it came (RFC 9111, section 5.1), to which a replay adds its own.
///
/// It is the first line of a record's fields, in a form of fixed length, so that a replay without one costs a comparison.
/// Earlier versions leave it out like any other `Age`, and records without it stay valid.
public enum AgeStamp {
  private static let name: StaticString = "Age: "
  private static let digits = 10
  private static let length = name.utf8CodeUnitCount + digits + 2
  /// The longest age that is noted, in seconds: the number that RFC 9111 gives for one that is too large.
  private static let longest = 1 << 31

  /// Writes the stamp, unless the response is new. Call it before any other field is written.
  ///
  /// - Parameter age: The age in seconds.
  public static func put(_ age: Int, into fields: inout ByteBuffer) {
    invariant(fields.readableBytes == 0, "an age is noted behind other fields")
    guard age > 0 else { return }
    let text = String(min(age, longest))
    fields.writeLiteral(name)
    fields.writeString(String(repeating: "0", count: digits - text.utf8.count) + text)
    fields.writeLiteral("\r\n")
  }

  /// Returns the age of a response, in seconds, and the response without the stamp; the response itself with 0 if it has
  /// none.
  public static func take(from response: RecordedResponse) -> (age: Int, response: RecordedResponse) {
    guard let age = age(of: response.fields) else { return (0, response) }
    return (
      age,
      RecordedResponse(
        status: response.status, fields: rest(of: response.fields), body: response.body,
        trailers: response.trailers)
    )
  }

  /// The fields without those that describe one moment, but with the stamp.
  static func keeping(_ fields: ByteBuffer) -> ByteBuffer {
    guard let age = age(of: fields) else { return fields.fieldLines(without: .momentary) }
    let (own, rest) = (rest(of: fields), rest(of: fields).fieldLines(without: .momentary))
    guard rest.readableBytes < own.readableBytes else { return fields }
    var kept = ByteBufferAllocator().buffer(capacity: length + rest.readableBytes)
    put(age, into: &kept)
    kept.writeImmutableBuffer(rest)
    return kept
  }

  /// The age in the stamp; `nil` if there is none.
  private static func age(of fields: ByteBuffer) -> Int? {
    guard fields.readableBytes >= length else { return nil }
    return fields.withUnsafeReadableBytes { bytes in
      let start = name.utf8CodeUnitCount
      guard
        UnsafeRawBufferPointer(rebasing: bytes[..<start]).elementsEqual(
          UnsafeRawBufferPointer(start: name.utf8Start, count: start)),
        bytes[start + digits] == ASCII.carriageReturn, bytes[start + digits + 1] == ASCII.lineFeed
      else { return nil }
      return ASCII.decimal(UnsafeRawBufferPointer(rebasing: bytes[start..<start + digits]))
    }
  }

  private static func rest(of fields: ByteBuffer) -> ByteBuffer {
    fields.getSlice(at: fields.readerIndex + length, length: fields.readableBytes - length) ?? ByteBuffer()
  }
}
