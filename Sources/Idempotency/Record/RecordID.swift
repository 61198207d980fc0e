/// The identity under which a record is stored, made from (caller, endpoint, key).
///
/// The backend meets it as `Idempotency-Request-Id`. It tells nothing of what it was made from.
public struct RecordID: Hashable, Sendable {
  public var digest: Digest256

  public init(_ digest: Digest256) { self.digest = digest }

  /// As it is shown to the backend and written into the keys of a store: 43 characters of base64url.
  public var text: String { digest.text }
}
