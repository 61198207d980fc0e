/// The identity under which a record is stored, made from caller, endpoint and key.
///
/// The backend receives it as `Idempotency-Request-Id`. It reveals nothing of its origin.
public struct RecordID: Hashable, Sendable {
  public var digest: Digest256

  public init(_ digest: Digest256) { self.digest = digest }

  /// The text for the backend and for the keys of a store: 43 characters of base64url.
  public var text: String { digest.text }
}
