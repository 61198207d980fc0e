/// The identity under which a record is stored, made from (caller, endpoint, key).
///
/// The backend meets it as `Idempotency-Request-Id`. It tells nothing of what it was made from.
package struct RecordID: Hashable, Sendable {
  package var digest: Digest256

  package init(_ digest: Digest256) { self.digest = digest }

  /// As it is shown to the backend and written into the keys of a store: 43 characters of base64url.
  package var text: String { digest.text }
}
