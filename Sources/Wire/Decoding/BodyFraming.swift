/// How the end of a request's body is told.
public enum BodyFraming: Equatable, Sendable {
  /// There is no body, and no `Content-Length`.
  case none
  /// As many bytes as `Content-Length` says, perhaps 0.
  case length(Int)
  /// Chunks; the length is not known beforehand.
  case chunked

  /// Whether nothing follows the head.
  public var isEmpty: Bool { self == .none || self == .length(0) }
}
