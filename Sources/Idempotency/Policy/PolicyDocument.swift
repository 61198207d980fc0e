import NIOCore
import Wire

/// The policy that protected resources publish, as draft-ietf-httpapi-idempotency-key-header asks of them: the routes
/// of a host, their key sources, retention and statuses, and the problem codes.
///
/// It is made from the live configuration, and contains nothing about callers, upstreams and the values of fields.
public struct PolicyDocument: Sendable {
  /// A protected route as JSON, and the hosts whose clients may read it.
  private struct Entry: Sendable {
    let host: HostPattern?
    let json: String
  }

  /// The time for which a client may use its copy, in seconds. A reload changes the document without notice.
  private static let maxAge = 300

  private let entries: [Entry]
  /// The URL of a page for people; `nil` for none.
  private let page: String?

  /// Creates the policy of routes.
  ///
  /// - Parameter page: The URL of a page with the problem codes in words. Browsers are led there, and take the code along,
  ///   which is the fragment of a problem's type.
  public init(_ routes: [RoutePolicy], page: String? = nil) {
    self.page = page
    entries = routes.filter(\.isEnforced).map {
      Entry(host: $0.match.host.map(HostPattern.init), json: $0.published)
    }
  }

  /// The response to a GET or HEAD at this host: the document, or 304 if the client has it already, or the way to the
  /// page for whoever takes HTML.
  public func response(to head: MessageHead, host: ByteBuffer) -> OwnResponse {
    if let page, head.takesHTML {
      return OwnResponse(
        status: 303,
        fields: [("Location", page), ("Vary", "Accept"), ("Cache-Control", "max-age=\(Self.maxAge)")])
    }
    let body = body(host: host)
    let tag = "\"\(Digest256.sha256(of: Array(body.utf8)).text)\""
    var fields: [(name: StaticString, value: String)] = [
      ("Cache-Control", "max-age=\(Self.maxAge)"), ("ETag", tag),
    ]
    if page != nil { fields.append(("Vary", "Accept")) }
    guard !head.hasCopy(of: tag) else { return OwnResponse(status: 304, fields: fields) }
    fields.append(("Content-Type", "application/json"))
    return OwnResponse(status: 200, fields: fields, body: ByteBuffer(string: body))
  }

  private func body(host: ByteBuffer) -> String {
    let routes = host.withUnsafeReadableBytes { host in
      entries.filter { $0.host?.matches(host) ?? true }.map(\.json)
    }
    return "{\"routes\":[\(routes.joined(separator: ","))],\"problems\":[\(Self.problems)]}\n"
  }

  private static let problems = Problem.Code.allCases.map(\.published).joined(separator: ",")
}

extension MessageHead {
  /// Whether `Accept` names HTML, as that of browsers does, among the elements that are read. One that is refused by a
  /// weight of zero is not told from the others.
  fileprivate var takesHTML: Bool {
    var isNamed = false
    readList(of: FieldNameSet(.accept)) { element in
      let type = UnsafeRawBufferPointer(
        rebasing: element.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") })
      isNamed = Array("text/html".utf8).withUnsafeBytes { ASCII.equalsIgnoringCase($0, type) }
      return !isNamed
    }
    return isNamed
  }

  /// Whether `If-None-Match` names an entity tag (RFC 9110, section 13.1.2), by weak comparison, among the elements that
  /// are read.
  fileprivate func hasCopy(of tag: String) -> Bool {
    var isNamed = false
    readList(of: FieldNameSet(.ifNoneMatch)) { element in
      let isWeak = element.starts(with: "W/".utf8)
      let own = UnsafeRawBufferPointer(rebasing: element.dropFirst(isWeak ? 2 : 0))
      isNamed = own.elementsEqual(tag.utf8) || element.elementsEqual("*".utf8)
      return !isNamed
    }
    return isNamed
  }
}

extension RoutePolicy {
  /// The route as a JSON object.
  fileprivate var published: String {
    Self.object([
      ("name", name.jsonString),
      ("methods", match.methods.isEmpty ? nil : Self.list(match.methods.map(\.jsonString))),
      ("path", match.path.map(\.text.jsonString)), ("host", match.host.map(\.jsonString)),
      ("headers", match.headers.isEmpty ? nil : Self.list(match.headers.map(\.name.jsonString))),
      ("graphql", match.graphql?.rawValue.jsonString),
      ("profile", profile?.rawValue.jsonString), ("idempotency", idempotency.rawValue.jsonString),
      ("key", publishedKey),
      ("endpoint", endpoint.rawValue.jsonString), ("endpoint_host", endpointHost.rawValue.jsonString),
      (
        "fingerprint",
        Self.object([
          ("body", recipe.body.rawValue.jsonString), ("headers", Self.list(recipe.headers.map(\.jsonString))),
          ("ignore", Self.list(recipe.ignore.map(\.text.jsonString))),
          ("only", recipe.only.isEmpty ? nil : Self.list(recipe.only.map(\.text.jsonString))),
        ])
      ),
      ("retention_seconds", Self.seconds(retention)), ("remember_seconds", Self.seconds(remember)),
      ("unknown_retention_seconds", Self.seconds(unknownRetention)),
      ("mismatch_status", "\(mismatchStatus)"), ("in_flight_status", "\(inFlightStatus)"),
      ("duplicates", duplicates.rawValue.jsonString), ("echo_key", "\(echoesKey)"),
      ("record", record.rawValue.jsonString),
      ("wait_timeout_seconds", Self.seconds(waitTimeout)),
      (
        "outcomes",
        Self.object([
          ("retry", Self.list(outcomes.patterns(of: .retry))),
          ("unknown", Self.list(outcomes.patterns(of: .unknown))),
        ])
      ),
      ("on_unknown", onUnknown.rawValue.jsonString), ("max_request_body", "\(maxRequestBody)"),
      ("batch", batch.map(Self.published)),
    ])
  }

  private var publishedKey: String {
    Self.object([
      ("from", Self.list(key.from.map(\.published))), ("format", key.format.rawValue.jsonString),
      ("min_length", "\(key.minLength)"), ("max_length", "\(key.maxLength)"),
    ])
  }

  private static func published(_ batch: BatchPolicy) -> String {
    object([
      ("items", batch.items.jsonString), ("key", batch.key.jsonString),
      ("results", batch.results.jsonString), ("max_items", "\(batch.maxItems)"),
    ])
  }

  /// A JSON object of the members that are there.
  private static func object(_ members: [(name: String, json: String?)]) -> String {
    let written = members.compactMap { member in member.json.map { "\(member.name.jsonString):\($0)" } }
    return "{\(written.joined(separator: ","))}"
  }

  private static func list(_ items: [String]) -> String { "[\(items.joined(separator: ","))]" }

  private static func seconds(_ span: Milliseconds) -> String {
    let fraction = String(span.count % 1000 + 1000).dropFirst()
    return span.count % 1000 == 0 ? "\(span.count / 1000)" : "\(span.count / 1000).\(fraction)"
  }
}

extension KeySource {
  /// The source as JSON: a text, or a list of the parts of one key.
  fileprivate var published: String {
    guard case .composite = self else { return text.jsonString }
    return text
  }
}

extension OutcomeTable {
  /// The statuses of a class as JSON, in which `"5xx"` stands for a whole hundred. All others are final.
  fileprivate func patterns(of outcome: OutcomeClass) -> [String] {
    (2...5).flatMap { hundred -> [String] in
      let statuses = (hundred * 100..<hundred * 100 + 100).filter { self[$0] == outcome }
      return statuses.count == 100 ? ["\"\(hundred)xx\""] : statuses.map(String.init)
    }
  }
}

extension Problem.Code {
  /// The code as a JSON object. Whether a problem is retryable is left out where that depends on the record.
  fileprivate var published: String {
    let statuses = statuses.map(String.init).joined(separator: ",")
    let retryable = isRetryable.map { ",\"retryable\":\($0)" } ?? ""
    let type = "\(Problem.documentPath)#\(rawValue)"
    return
      "{\"code\":\(rawValue.jsonString),\"type\":\(type.jsonString),\"title\":\(title.jsonString),"
      + "\"statuses\":[\(statuses)]\(retryable)}"
  }

  /// The statuses with which problems of this code are sent.
  public var statuses: [Int] {
    switch self {
    case .badRequest, .keyMissing, .keyInvalid: [400]
    case .keyNotSupported: [400, 501]
    case .callerUnknown: [401]
    case .noRoute: [404]
    case .requestTimeout: [408]
    case .payloadMismatch: [400, 409, 422]
    case .inFlight: [409, 425, 429, 503]
    case .keyExpired: [409, 412]
    case .responseNotKept: [409]
    case .outcomeUnknown: [409, 502, 504]
    case .requestTooLarge: [413]
    case .quotaExceeded: [429]
    case .headerTooLarge: [431]
    case .notImplemented: [501]
    case .upstreamUnreachable: [502]
    case .storeUnavailable, .storeUnreadable, .overloaded: [503]
    }
  }

  /// Whether a retry with the same key may succeed; `nil` if that depends on the record.
  public var isRetryable: Bool? {
    switch self {
    case .inFlight, .requestTimeout, .upstreamUnreachable, .storeUnavailable, .storeUnreadable, .overloaded,
      .quotaExceeded:
      true
    case .outcomeUnknown, .callerUnknown: nil
    case .badRequest, .keyMissing, .keyInvalid, .keyNotSupported, .payloadMismatch, .responseNotKept,
      .keyExpired, .requestTooLarge, .notImplemented, .noRoute, .headerTooLarge:
      false
    }
  }
}
