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

extension MessageHead {
  /// The request's method in the client's spelling.
  var methodText: String {
    switch method {
    case .get: "GET"
    case .head: "HEAD"
    case .post: "POST"
    case .put: "PUT"
    case .patch: "PATCH"
    case .delete: "DELETE"
    case .options, .trace, .connect, .other: string(methodRange)
    }
  }

  /// The method for the log, the journal and spans, which keep many: a client's own may be as long as its line.
  var loggedMethod: String {
    guard method == .other else { return methodText }
    return String(methodText.prefix(32))
  }

  private static let formsOfHTTP: [StaticString] = ["h2", "h3", "http", "tls"]

  /// Whether every requested protocol is something other than HTTP in any form, or TLS (RFC 9110, section 7.8).
  var upgradesLeaveHTTP: Bool {
    readList(of: FieldNameSet(.upgrade)) { name in
      !Self.formsOfHTTP.contains { form in
        let beginning = UnsafeRawBufferPointer(rebasing: name.prefix(form.utf8CodeUnitCount))
        return ASCII.equalsIgnoringCase(beginning, form)
      }
    }
  }
}

extension RequestTarget {
  /// Path and query as they are forwarded.
  var text: String {
    guard let query else { return String(buffer: forwarded) }
    return String(buffer: forwarded) + "?" + String(buffer: query)
  }
}

extension UpstreamSettings {
  /// The value of `Host` if the client sent none (HTTP/1.0).
  var authority: String {
    switch address {
    case .tcp: address.description
    case .unix: "localhost"
    }
  }
}

extension MessageHead {
  /// The path and the host that the request names, in the form in which they are matched.
  public func addressed(reading: PathReading = .normal) throws(Problem) -> (RequestTarget, RequestHost?) {
    do throws(WireError) {
      // An http URI has a host (RFC 9110, section 4.2.1); HTTP/1.0 alone may leave it out.
      guard minorVersion == 0 || first(.host)?.valueRange.isEmpty != true else { throw .badHost }
      let target = try RequestTarget(self, reading: reading)
      return (target, try RequestHost(of: self, target: target))
    } catch {
      throw .unreadable(error)
    }
  }
}

extension RouteTable {
  /// The path and the host of a request. Encoded slashes are characters of their segments where the request meets, by
  /// this reading, a route that keeps them: the route's owner says that its backend reads them so.
  ///
  /// - Parameters:
  ///   - operation: The GraphQL operation that the body selects, if it has been read for that.
  ///   - form: The methods that a form in the body names, if it has been read for that.
  public func address(
    of head: MessageHead, operation: GraphQLOperation = .unread, form: MethodParameter.Form = .unread
  ) throws(Problem) -> (RequestTarget, RequestHost?) {
    do throws(Problem) {
      return try head.addressed()
    } catch {
      guard let kept = addressWithSlashes(of: head, operation, form) else { throw error }
      return kept
    }
  }

  @inline(never)
  private func addressWithSlashes(
    of head: MessageHead, _ operation: GraphQLOperation, _ form: MethodParameter.Form
  ) -> (RequestTarget, RequestHost?)? {
    guard keepsSlashes, let (target, host) = try? head.addressed(reading: .keepingSlashes),
      target.form != .authority
    else { return nil }
    let name = host?.name ?? ByteBuffer()
    let route: Route?
    if let preflight = preflight(head) {
      route = choice(for: preflight, head: head, host: name, path: target.path).announced
    } else {
      let choice = try? choice(
        for: head, host: name, path: target.path, query: target.query, operation: operation, form: form)
      route = choice?.route
    }
    return route?.policy.keepsSlashes == true ? (target, host) : nil
  }
}
