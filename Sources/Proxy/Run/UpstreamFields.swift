import Idempotency
import NIOCore
import Telemetry
import Wire

/// Makes the field lines with which a request goes to the backend.
enum UpstreamFields {
  /// Semel's own request fields: a client's are dropped in every spelling.
  private static let own = FieldNameSet(
    .idempotencyAttempt, .idempotencyRequestID, .xForwardedFor, .xForwardedHost, .xForwardedProto)
  /// Further fields that state the client, accepted only from a trusted proxy.
  private static let hearsay = FieldNameSet(.forwarded, .xForwardedPort, .xRealIP)
  /// Fields that are made anew.
  private static let remade = FieldNameSet(.contentLength, .expect, .host)

  /// The client's end-to-end fields, then those of the proxy.
  ///
  /// - Parameters:
  ///   - id: of the record, where the request has a key; also while the store is away.
  ///   - attempt: of a claimed request.
  ///   - contentCoding: of a claimed request's route.
  static func make(
    for delivery: Delivery, _ target: RequestTarget, to upstream: UpstreamSettings, id: RecordID?,
    attempt: Int? = nil, contentCoding: RoutePolicy.ContentCoding = .pass
  ) -> ByteBuffer {
    let head = delivery.request.head
    var out = ByteBufferAllocator().buffer(capacity: head.bytes.readableBytes + 256)
    let host = target.authority ?? head.first(.host).map { head.slice($0.valueRange) }
    out.writeStaticString("Host: ")
    switch (upstream.host, host) {
    case (.preserve, let host?): out.writeImmutableBuffer(host)
    case (.preserve, nil), (.upstream, _): out.writeString(upstream.authority)
    case (.name(let name), _): out.writeString(name)
    }
    out.writeStaticString("\r\n")
    let refusesCoding = contentCoding == .identity
    let untrue = delivery.peer.isTrusted ? own : own.union(hearsay)
    var dropped = untrue.union(remade)
    if refusesCoding { dropped.insert(FieldNameSet(.acceptEncoding)) }
    let underscored: UnderscoredFields =
      delivery.configuration.passesUnderscores ? .kept(except: untrue.union(.methodOverrides)) : .dropped
    if let trace = delivery.logEntry.trace, trace.isExported {
      head.copyFields(
        into: &out, omitting: dropped.union(FieldNameSet(.traceparent)), underscored: underscored)
      out.writeStaticString("traceparent: ")
      out.writeString(trace.context.speaking(as: trace.forwardSpan).text)
      out.writeStaticString("\r\n")
    } else {
      head.copyFields(into: &out, omitting: dropped, underscored: underscored)
    }
    out.writeString(delivery.peer.forwardedLines)
    if let host = delivery.peer.forwardedHost {
      out.writeStaticString("X-Forwarded-Host: ")
      out.writeString(host)
      out.writeStaticString("\r\n")
    } else if let host {
      out.writeStaticString("X-Forwarded-Host: ")
      out.writeImmutableBuffer(host)
      out.writeStaticString("\r\n")
    }
    out.writeStaticString(delivery.peer.via(head))
    // gRPC backends send trailers only after `TE: trailers`.
    if upstream.http2 != .off, head.list(.te, contains: "trailers") {
      out.writeStaticString("TE: trailers\r\n")
    }
    if refusesCoding { out.writeStaticString("Accept-Encoding: identity\r\n") }
    if let id {
      out.writeStaticString("Idempotency-Request-Id: ")
      out.writeDigest(id.digest)
      out.writeStaticString("\r\n")
    }
    if let attempt {
      out.writeStaticString("Idempotency-Attempt: ")
      out.writeDecimal(attempt)
      out.writeStaticString("\r\n")
    }
    return out
  }
}

extension ByteBuffer {
  /// Writes the 43 characters of base64url.
  mutating func writeDigest(_ digest: Digest256) {
    writeWithUnsafeMutableBytes(minimumWritableBytes: Digest256.textLength) { bytes in
      if let start = bytes.bindMemory(to: UInt8.self).baseAddress { digest.writeText(to: start) }
      return Digest256.textLength
    }
  }
}
