import NIOHTTP2

extension Error {
  /// Whether NIO's HTTP/2 codec throws it for the peer's fault on one stream, which the codec then resets. It may throw
  /// the same for the connection, after a GOAWAY.
  public var mayConcernOneHTTP2Stream: Bool {
    switch self {
    // A window that grows by nothing, or beyond its maximum (RFC 9113, sections 6.9 and 6.9.1).
    case is NIOHTTP2Errors.InvalidWindowIncrementSize, is NIOHTTP2Errors.InvalidFlowControlWindowSize: true
    // DATA beyond the stream's window, frames in a wrong order, and a second HEADERS that does not end the stream.
    case is NIOHTTP2Errors.FlowControlViolation, is NIOHTTP2Errors.BadStreamStateTransition,
      is NIOHTTP2Errors.TrailersWithoutEndStream:
      true
    default: false
    }
  }
}
