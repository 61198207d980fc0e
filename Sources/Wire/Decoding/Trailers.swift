import NIOCore

/// The rules for fields after a chunked body, which are refused, dropped or kept.
enum Trailers {
  /// Fields that frame or route the message or end the connection, and that cause the whole message to be refused:
  /// their sender wants two readers to see different messages.
  private static let refused = FieldNameSet(.connection, .contentLength, .host, .transferEncoding)

  /// Fields that are not allowed in trailers (RFC 9110, section 6.5.1) and are dropped: those of one hop, of
  /// authentication, of the content's form or of the treatment of the request.
  private static let dropped: FieldNameSet = [
    .hopByHop, .ownRequest, .ownResponse,
    FieldNameSet(
      .authorization, .cacheControl, .contentEncoding, .contentType, .contentLength, .cookie, .date, .expect,
      .idempotencyKey,
      .location, .prefer, .retryAfter, .setCookie, .via, .xForwardedFor, .xForwardedHost, .xForwardedProto),
  ]

  /// The refused fields in a response's trailers. `Content-Length` is not among them: after a complete body it does no
  /// harm, and refusing the response would make the outcome unknown.
  private static let refusedInResponses = FieldNameSet(.connection, .host, .transferEncoding)

  /// The field lines to forward, each ended by CRLF.
  ///
  /// - Parameter bytes: The whole trailer section.
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
