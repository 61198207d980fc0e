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
  private static let clientStated = FieldNameSet(.forwarded, .xForwardedPort, .xRealIP)
  /// Fields that are made anew.
  private static let remade = FieldNameSet(.contentLength, .expect, .host)

  /// Returns the client's end-to-end fields, then those of the proxy.
  ///
  /// - Parameters:
  ///   - id: The ID of the record if the request has a key, also while the store is away.
  ///   - attempt: The attempt of a claimed request.
  ///   - contentCoding: The setting of a claimed request's route.
  ///   - route: The route of a request with a key, which may withhold that; `nil` for any other request.
  ///   - omitted: Further fields of the client that do not go to the backend.
  static func make(
    for delivery: Delivery, _ target: RequestTarget, to upstream: UpstreamSettings, id: RecordID?,
    attempt: Int? = nil, contentCoding: RoutePolicy.ContentCoding = .pass, by route: Route? = nil,
    omitting omitted: FieldNameSet = []
  ) -> ByteBuffer {
    let head = delivery.request.head
    let host = target.authority ?? head.first(.host).map { head.slice($0.valueRange) }
    var out = ByteBufferAllocator().buffer(capacity: head.bytes.readableBytes + 256)
    out.writeHost(host, for: upstream)
    let coding = contentCoding == .identity ? FieldNameSet(.acceptEncoding) : []
    copyFields(of: delivery, omitting: omitted.union(coding), route?.withheldFields, to: &out)
    if route?.withheldFields != nil { route?.policy.writeRenamedKey(of: head, into: &out) }
    out.writeString(delivery.peer.forwardedLines)
    out.writeForwardedHost(delivery.peer.forwardedHost, else: host)
    out.writeLiteral(delivery.peer.via(head))
    // gRPC backends send trailers only after `TE: trailers`.
    if upstream.http2 != .off, head.list(.te, contains: "trailers") {
      out.writeLiteral("TE: trailers\r\n")
    }
    if contentCoding == .identity { out.writeLiteral("Accept-Encoding: identity\r\n") }
    if let id {
      out.writeFieldLine("Idempotency-Request-Id: ", longest: Digest256.textLength) { place in
        id.digest.writeText(to: place.assumingMemoryBound(to: UInt8.self))
        return Digest256.textLength
      }
    }
    if let attempt { out.writeFieldLine("Idempotency-Attempt: ", attempt) }
    return out
  }

  /// Copies the client's fields, except those that the proxy makes itself or does not accept from this client.
  private static func copyFields(
    of delivery: Delivery, omitting omitted: FieldNameSet, _ withheld: FieldOmission?,
    to out: inout ByteBuffer
  ) {
    let untrue = delivery.peer.isTrusted ? own : own.union(clientStated)
    var dropped = untrue.union(remade).union(omitted)
    let underscored: UnderscoredFields =
      delivery.configuration.passesUnderscores ? .passed(except: untrue.union(.methodOverrides)) : .dropped
    let trace = delivery.logEntry.trace.flatMap { $0.isExported ? $0 : nil }
    if trace != nil { dropped.insert(FieldNameSet(.traceparent)) }
    let announced = delivery.crossOrigin?.announcedToBackend
    if announced != nil { dropped.insert(FieldNameSet(.accessControlRequestHeaders)) }
    delivery.request.head.copyFields(
      into: &out, omitting: dropped, underscored: underscored,
      passesPathOverrides: delivery.peer.isTrusted, withheld)
    if let announced, !announced.isEmpty {
      out.writeString("Access-Control-Request-Headers: \(announced.joined(separator: ","))\r\n")
    }
    if let trace {
      out.writeLiteral("traceparent: ")
      out.writeString(trace.context.speaking(as: trace.forwardSpan).text)
      out.writeLiteral("\r\n")
    }
  }
}

extension ByteBuffer {
  /// Writes the `Host` field that the upstream's `host` setting asks for.
  fileprivate mutating func writeHost(_ host: ByteBuffer?, for upstream: UpstreamSettings) {
    if case .preserve = upstream.host, let host { return writeFieldLine("Host: ", host) }
    writeLiteral("Host: ")
    writeString(upstream.hostField(for: nil))
    writeLiteral("\r\n")
  }

  /// Writes `X-Forwarded-Host`: the host that a trusted proxy has named, else the request's own.
  fileprivate mutating func writeForwardedHost(_ forwarded: String?, else host: ByteBuffer?) {
    guard let forwarded else {
      if let host { writeFieldLine("X-Forwarded-Host: ", host) }
      return
    }
    writeLiteral("X-Forwarded-Host: ")
    writeString(forwarded)
    writeLiteral("\r\n")
  }
}

extension UpstreamSettings {
  /// The value of `Host` in requests to the backend for a client that names this host.
  public func hostField(for host: String?) -> String {
    switch self.host {
    case .preserve: host ?? authority
    case .upstream: authority
    case .name(let name): name
    }
  }
}
