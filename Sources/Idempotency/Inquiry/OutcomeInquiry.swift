import NIOCore
import Wire

/// A client's question for the outcome of a request that it does not send again:
/// `GET /.well-known/idempotency/outcome?method=POST&path=/v1/orders`, with the fields of its key and its caller.
public struct OutcomeInquiry: Sendable {
  /// The path at which inquiries are made.
  public static let path = "/.well-known/idempotency/outcome"

  /// The record that the request would have.
  public let id: RecordID
  /// The client's key, which opens a sealed response.
  public let key: IdempotencyKey
  public let route: Route
  /// The caller, in whose quota the inquiry counts.
  public let caller: Caller
  /// The maximum time to wait for the end of a request in flight; 0 for none.
  public let attach: Milliseconds
  /// Whether the recorded response itself is wanted.
  public let wantsResponse: Bool

  /// Identifies the request that an inquiry is about.
  ///
  /// - Parameters:
  ///   - head: The inquiry's own head, whose fields stand for those of the request.
  ///   - host: The host of the inquiry, which is that of the request; `nil` for none.
  public init(
    head: MessageHead, query: ByteBuffer?, host: RequestHost?, peer: CallerPeer, routes: RouteTable,
    under identityKey: IdentityKey?
  ) throws(Problem) {
    let parameters = try InquiryParameters(query)
    let (target, method) = (try parameters.target(by: routes), ByteBuffer(string: parameters.method))
    try Self.refuseOtherCase(parameters.method, head, host, target, routes)
    guard
      let route = routes.protectedRoute(
        for: head, method: method, host: host?.name ?? ByteBuffer(), path: target.path),
      route.policy.keepsSlashes || !target.hasEncodedSlash, let policy = route.policy.caller
    else { throw .noRoute }
    // Whoever knows a key could name its owner's account. The request itself at least needs the payload.
    guard !(parameters.wantsResponse && policy.provesNothing) else { throw .badRequest(.inquiry) }
    guard let caller = try policy.callerBeforeBody(head: head, peer: peer, query: target.query) else {
      // An inquiry has no body, so that the parts in it are missing.
      throw .callerUnknown(.missing(policy.parts.first(where: \.isInBody) ?? .address))
    }
    key = try Self.key(route.policy.key, parameters.key, head: head, query: target.query)
    id = route.recordID(
      caller: caller, host: host, method: method, path: target.path, key: key, under: identityKey)
    self.route = route
    self.caller = caller
    attach = min(parameters.attach, route.policy.waitTimeout)
    wantsResponse = parameters.wantsResponse
  }

  /// Refuses a method that differs from a route's only in letter case, as the request itself would be.
  private static func refuseOtherCase(
    _ method: String, _ head: MessageHead, _ host: RequestHost?, _ target: RequestTarget, _ routes: RouteTable
  ) throws(Problem) {
    let capitals = method.uppercased()
    guard capitals != method else { return }
    let meant = routes.protectedRoute(
      for: head, method: ByteBuffer(string: capitals), host: host?.name ?? ByteBuffer(), path: target.path)
    if meant != nil { throw .badRequest(.methodCase) }
  }

  /// The key in the request's own place or in the parameter `key`; in both only if it is the same.
  private static func key(
    _ policy: KeyPolicy, _ texts: [String], head: MessageHead, query: ByteBuffer?
  ) throws(Problem) -> IdempotencyKey {
    let finding = try policy.keyBeforeBody(head: head, query: query)
    guard !texts.isEmpty else {
      if case .found(let key) = finding { return key }
      // A request without a body, or whose body had none, has its key there.
      guard case .needsBody = finding, let key = try policy.keyOutsideBody(head: head, query: query) else {
        throw .keyMissingInInquiry
      }
      return key
    }
    // Several parameters are the parts of a composite key.
    guard texts.count == 1 || policy.from.contains(where: { $0.parts.count == texts.count }) else {
      throw .badRequest(.inquiry)
    }
    let key = try policy.key(texts: texts)
    if case .found(let other) = finding, other != key { throw .keyInvalid(.repeated, policy: policy) }
    return key
  }
}

extension OutcomeInquiry {
  /// The route of the request that an inquiry, or the preflight of one, is about; `nil` if there is none.
  public static func route(
    head: MessageHead, query: ByteBuffer?, host: RequestHost?, routes: RouteTable, preflight: Preflight? = nil
  ) -> Route? {
    guard let parameters = try? InquiryParameters(query), let target = try? parameters.target(by: routes)
    else { return nil }
    let (method, host) = (ByteBuffer(string: parameters.method), host?.name ?? ByteBuffer())
    guard let preflight else {
      return routes.protectedRoute(for: head, method: method, host: host, path: target.path)
    }
    let route = routes.route(announcedBy: preflight, method: method, host: host, path: target.path)
    return route?.policy.isEnforced == true ? route : nil
  }
}

/// The parameters of an inquiry.
private struct InquiryParameters {
  private(set) var method = ""
  private(set) var path = ""
  /// The key, or the parts of a composite one in their order.
  private(set) var key: [String] = []
  private(set) var attach: Milliseconds = 0
  private(set) var wantsResponse = false

  /// The maximum length of a query that is read, in bytes.
  private static let maxBytes = 8 << 10
  /// The maximum number of parameters: one of each, and the parts of the longest composite key in place of one.
  private static let maxParameters = 12

  /// Reads the parameters. The first that is unknown, malformed or repeated is refused, since it may be a misspelt one.
  init(_ query: ByteBuffer?) throws(Problem) {
    let query = query ?? ByteBuffer()
    let isRead = query.readableBytes <= Self.maxBytes && query.withUnsafeReadableBytes { read($0) }
    guard isRead, !method.isEmpty, path.hasPrefix("/") else { throw .badRequest(.inquiry) }
  }

  /// Reads the parameters up to the first that is refused; false if one is.
  private mutating func read(_ text: UnsafeRawBufferPointer) -> Bool {
    var seen: Set<String> = []
    var count = 0
    for pair in FormPairs(text) {
      count += 1
      guard count <= Self.maxParameters, let name = Self.decoded(text, pair.name),
        name == "key" || seen.insert(name).inserted, let value = Self.decoded(text, pair.value),
        set(name, value)
      else { return false }
    }
    return true
  }

  /// The target of the request that the inquiry is about. Where any route keeps encoded slashes, it may have some.
  func target(by routes: RouteTable) throws(Problem) -> RequestTarget {
    do throws(WireError) {
      return try RequestTarget(
        MessageHead(method: method, target: path), reading: routes.keepsSlashes ? .keepingSlashes : .normal)
    } catch {
      throw .badRequest(.inquiry)
    }
  }

  /// Sets a parameter; false if it is unknown or its value is not allowed.
  private mutating func set(_ name: String, _ value: String) -> Bool {
    switch name {
    case "method": method = value
    case "path": path = value
    case "key": key.append(value)
    case "attach":
      guard let span = Milliseconds(text: value) else { return false }
      attach = span
    case "response":
      guard let flag = Bool(value) else { return false }
      wantsResponse = flag
    default: return false
    }
    return true
  }

  /// The decoded text; `nil` if it is malformed.
  private static func decoded(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> String? {
    let bytes = UnsafeRawBufferPointer(rebasing: text[range])
    guard PercentText.isWellFormed(bytes) else { return nil }
    return String(validating: Array(IteratorSequence(PercentText(bytes, as: .decoded))), as: UTF8.self)
  }
}

extension OutcomeInquiry {
  /// The next step after the store has stated the record's standing.
  public enum Action: Sendable, Equatable {
    /// Wait until the record may have changed, then look again.
    case wait(leaseLeft: Milliseconds)
    /// Respond with the standing as a document.
    case report(status: Int)
    /// Respond with the recorded response.
    case replay(CompletedRecord)
  }

  /// Decides on a standing.
  ///
  /// - Parameter mayWait: Whether time is left to wait for the end.
  public func action(on standing: Standing, mayWait: Bool) -> Action {
    switch standing {
    case .inFlight(let leaseLeft, _) where mayWait && attach > 0: return .wait(leaseLeft: leaseLeft)
    case .completed(let record) where wantsResponse:
      if case .whole = record.outcome { return .replay(record) }
      return .report(status: 404)
    default:
      // With 404, a client that wants the response does not take the document for it.
      return .report(status: wantsResponse ? 404 : 200)
    }
  }

  /// The document of a standing.
  ///
  /// - Parameter time: The text of a moment.
  public static func response(
    _ standing: Standing, status: Int, time: (StoreInstant) -> String
  ) -> OwnResponse {
    OwnResponse(
      status: status, fields: [("Content-Type", "application/json"), ("Cache-Control", "no-store")],
      body: ByteBuffer(string: "{\(members(of: standing, time).joined(separator: ","))}\n"))
  }

  private static func members(of standing: Standing, _ time: (StoreInstant) -> String) -> [String] {
    switch standing {
    case .absent: ["\"state\":\"absent\""]
    case .inFlight(_, let attempt): ["\"state\":\"in_flight\"", "\"attempt\":\(attempt)"]
    case .unknown(_, let attempt): ["\"state\":\"unknown\"", "\"attempt\":\(attempt)"]
    case .released(let attempt): ["\"state\":\"released\"", "\"attempt\":\(attempt)"]
    case .expired(let attempt): ["\"state\":\"expired\"", "\"attempt\":\(attempt)"]
    case .completed(let record):
      [
        "\"state\":\"completed\"", "\"status\":\(record.outcome.status)",
        "\"recorded_at\":\(time(record.recordedAt).jsonString)",
        "\"expires_at\":\(time(record.expiresAt).jsonString)", "\"attempt\":\(record.attempt)",
      ]
    }
  }
}
