import NIOCore

/// The fields after a chunked body: refused, dropped or kept.
enum Trailers {
  /// Those that would frame or route the message or end the connection: who sends them wants one reader to see
  /// something else than another.
  private static let refused = FieldNameSet(.connection, .contentLength, .host, .transferEncoding)

  /// Those that must not come so late (RFC 9110, section 6.5.1): of one hop, of authentication, of what the
  /// content is or of how the request is to be treated.
  private static let dropped: FieldNameSet = [
    .hopByHop, .ownRequest, .ownResponse,
    FieldNameSet(
      .authorization, .cacheControl, .contentEncoding, .contentType, .contentLength, .cookie, .date, .expect,
      .idempotencyKey,
      .location, .prefer, .retryAfter, .setCookie, .via, .xForwardedFor, .xForwardedHost, .xForwardedProto),
  ]

  /// A backend that puts the length behind a body that came whole has said nothing wrong: to refuse its response would
  /// make the outcome unknown.
  private static let refusedInResponses = FieldNameSet(.connection, .host, .transferEncoding)

  /// The lines that go on, each ended by CRLF. The buffer is the whole section.
  static func lines(
    _ fields: [MessageHead.Field], in bytes: ByteBuffer, ofResponse: Bool
  ) throws(WireError) -> ByteBuffer {
    if fields.isEmpty { return ByteBuffer() }
    let refused = ofResponse ? refusedInResponses : refused
    for field in fields where refused.contains(field.name) { throw .forbiddenTrailer }
    let section = MessageHead(bytes: bytes, start: .status(0, reason: 0..<0), minorVersion: 1, fields: fields)
    var output = ByteBuffer()
    section.copyFields(into: &output, omitting: dropped)
    return output
  }
}
