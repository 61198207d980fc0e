/// The fate of a request with a key that matches no protected route.
public enum UnmatchedKeys: String, Sendable, CaseIterable {
  /// Passed through unprotected.
  case pass
  /// Refused, so that a client that relies on its key notices.
  case refuse
}
