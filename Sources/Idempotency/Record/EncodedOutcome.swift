import NIOCore

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
