/// The framing of a request's body, which determines its end.
public enum BodyFraming: Equatable, Sendable {
  /// There is no body, and no `Content-Length`.
  case none
  /// The length that `Content-Length` declares, in bytes; may be 0.
  case length(Int)
  /// Chunks, whose total length is not known beforehand.
  case chunked

  /// Whether nothing follows the head.
  public var isEmpty: Bool { self == .none || self == .length(0) }
}
