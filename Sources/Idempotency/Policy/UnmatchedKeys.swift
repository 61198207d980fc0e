/// The treatment of a request that has a key and matches no protected route.
public enum UnmatchedKeys: String, Sendable, CaseIterable {
  /// The request is passed through unprotected.
  case pass
  /// The request is refused, so that a client that relies on its key notices.
  case refuse
}
