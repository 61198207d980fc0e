import NIOCore
import Wire

/// The signs in a backend's response of who has made it and of what became of the request, beyond its status.
///
/// They are read only where they can change the response's class.
public struct ResponseSigns: Sendable, Equatable {
  /// Whether the response says when to try again, as the one who refuses a request does. Varnish says it also where it
  /// has passed a request on and got no response, so that its word counts for nothing.
  public var hasRetryAfter = false
  /// Whether the request may have run all the same: an intermediary has made the response or passed it on, or the
  /// backend has given up a handler that goes on.
  public var mayFollowRun = false
  /// Whether an intermediary states that it sent nothing of the request.
  public var statesUnsent = false
  /// Whether the backend's own table of keys states that the key is in use, by a request beside this one.
  public var statesKeyInUse = false
  /// Whether a GraphQL server states that it ran nothing, since it does not know the document that the request names.
  public var lacksDocument = false

  public init() {}

  /// The signs of a response whose fields cannot be read: any intermediary may have made it.
  static let unread: Self = {
    var signs = Self()
    signs.mayFollowRun = true
    return signs
  }()

  /// Reads the signs of a response.
  ///
  /// - Parameters:
  ///   - body: The whole body; `nil` if it is not known, and so proves nothing.
  ///   - mayBeCut: Whether the body may be a part of one. It may show that the request ran then, not that it did not.
  ///   - isGraphQL: Whether the route matches by GraphQL operations.
  init(of head: MessageHead, body: ByteBuffer?, mayBeCut: Bool, isGraphQL: Bool) {
    let whole = mayBeCut ? nil : body
    switch head.status {
    case 408: mayFollowRun = body.map(Self.hasGivenUp) ?? false
    case 409:
      hasRetryAfter = Self.saysWhen(head)
      statesKeyInUse = body.map(Self.statesKeyInUse) ?? false && !head.hasContentCoding
    case 503:
      hasRetryAfter = Self.saysWhen(head) && !head.fields.contains { Self.isOfVarnish($0, in: head) }
      mayFollowRun =
        head.fields.contains { Self.isOfIntermediary($0, in: head) } || body.map(Self.tellsOfRun) ?? false
      statesUnsent = whole.map(Self.statesUnsent) ?? false && !Self.followsTries(head)
    default: break
    }
    if isGraphQL, let whole, !head.hasContentCoding { lacksDocument = Self.lacksDocument(whole) }
  }
}

// Intermediaries.
extension ResponseSigns {
  /// Whether the response has a `Retry-After` that can be read. Another one proves nothing.
  private static func saysWhen(_ head: MessageHead) -> Bool {
    if case .span = RetryAfter(of: head, now: { 0 }) { true } else { false }
  }

  private static let attempts = "x-envoy-attempt-count"
  private static let upstreamTime = "x-envoy-upstream-service-time"

  /// Whether Envoy counts tries before the one that the response is about, or has the response from behind it. Its text
  /// may not mention tries: where a retry finds no host, it is that of a first try that finds none.
  private static func followsTries(_ head: MessageHead) -> Bool {
    head.fields.contains { field in
      switch head.string(field.nameRange).lowercased() {
      case attempts: head.string(field.valueRange) != "1"
      case upstreamTime: true
      default: false
      }
    }
  }

  /// The fields that Varnish, Fastly, Cloudflare, Azure Front Door, API Gateway and Imperva add.
  private static let names: Set<String> = [
    "x-varnish", "x-served-by", "cf-ray", "x-azure-ref", "apigw-requestid", "x-iinfo",
  ]
  private static let envoyPrefix = "x-envoy-"
  /// The values of `Server` that name an intermediary, in lower case: Envoy, Istio, Heroku's two routers, Varnish,
  /// CloudFront, Akamai, the front end of Google's clouds, and LiteSpeed and Apache, which respond so where a worker
  /// dies while it runs a request.
  private static let servers: Set<String> = [
    "envoy", "istio-envoy", "cowboy", "vegur", varnish, "cloudfront", "akamaighost", "google", "litespeed",
    "apache",
  ]
  private static let varnish = "varnish"

  private static func isOfIntermediary(_ field: MessageHead.Field, in head: MessageHead) -> Bool {
    if field.name == .via { return true }
    let name = head.string(field.nameRange).lowercased()
    guard name == "server" else { return names.contains(name) || name.hasPrefix(envoyPrefix) }
    return servers.contains(product(of: field, in: head))
  }

  /// Whether Varnish, or Fastly by it, has made the response or passed it on: its error page has a `Retry-After` of
  /// its own.
  private static func isOfVarnish(_ field: MessageHead.Field, in head: MessageHead) -> Bool {
    switch head.string(field.nameRange).lowercased() {
    case "x-varnish", "x-served-by": true
    case "server": product(of: field, in: head) == varnish
    default: false
    }
  }

  /// The first product of a `Server` field, in lower case. Its version and further products may follow (RFC 9110,
  /// section 10.2.4).
  private static func product(of field: MessageHead.Field, in head: MessageHead) -> String {
    head.string(field.valueRange).prefix { $0 != "/" && $0 != " " && $0 != "\t" }.lowercased()
  }

  /// The body by which Go's `http.TimeoutHandler` responds while its handler runs on.
  private static let timeout = "<html><head><title>Timeout</title></head><body><h1>Timeout</h1></body></html>"
  /// The beginning of Envoy's text about a request that it has begun to pass on, which stands also where Envoy names
  /// itself in no field.
  private static let failure = "upstream connect error or disconnect/reset before headers"
  /// The reasons by which gRPC's gateway for HTTP tells that a call was lost on its way back.
  private static let lostCalls = ["error reading from server", "transport is closing"]

  /// Whether the body is one that is sent after a request was passed on, or while its handler runs on.
  private static func tellsOfRun(_ body: ByteBuffer) -> Bool {
    guard body.readableBytes <= maxTextLength else { return false }
    let text = String(buffer: body)
    return text == timeout || text.hasPrefix(failure)
      || lostCalls.contains { text.contains($0) } && isOfUnavailable(body)
  }

  /// The member in which gRPC's gateway and Twirp state a code.
  private static let callCode = JSONPointer(member: "code")

  /// Whether the body has gRPC's code of a service that was not available. The gateway writes spaces at random.
  private static func isOfUnavailable(_ body: ByteBuffer) -> Bool {
    body.withUnsafeReadableBytes { bytes in
      guard let document = try? JSONParser.parse(bytes), case .integer(let digits) = document.find(callCode)
      else { return false }
      return digits.elementsEqual("14".utf8)
    }
  }

  /// The codes by which Twirp says that it has given up a call, which may have run.
  private static let givenUp = ["deadline_exceeded", "canceled"].map { Array($0.utf8) }

  /// Whether the body of a 408 is that of a call that was given up while it ran.
  private static func hasGivenUp(_ body: ByteBuffer) -> Bool {
    guard body.readableBytes <= maxTextLength else { return false }
    return body.withUnsafeReadableBytes { bytes in
      guard let document = try? JSONParser.parse(bytes), case .string(let text) = document.find(callCode)
      else { return false }
      return givenUp.contains { $0.elementsEqual(text) }
    }
  }

  /// The member in which Stripe's API states a code, and the code of a key whose request has not ended.
  private static let errorCode = JSONPointer("/error/code")
  private static let keyInUse = Array("idempotency_key_in_use".utf8)

  private static func statesKeyInUse(_ body: ByteBuffer) -> Bool {
    guard body.readableBytes <= maxTextLength, let errorCode else { return false }
    return body.withUnsafeReadableBytes { bytes in
      guard let document = try? JSONParser.parse(bytes), case .string(let text) = document.find(errorCode)
      else { return false }
      return keyInUse.elementsEqual(text)
    }
  }

  /// The longest text that is read for a reason.
  private static let maxTextLength = 1024
  /// Envoy's text where no host of a cluster is healthy.
  private static let noHost = "no healthy upstream"
  private static let reset = failure + ". reset reason: "
  /// The reasons that arise before Envoy writes a byte. After tries of its own its text begins otherwise (*retried and
  /// the latest reset reason*): an earlier one may have reached the backend.
  private static let unsentReasons = [
    "connection failure", "local connection failure", "remote connection failure", "overflow",
  ]

  /// Whether the text is one by which Envoy states that it sent nothing.
  private static func statesUnsent(_ body: ByteBuffer) -> Bool {
    guard body.readableBytes <= maxTextLength else { return false }
    var text = String(buffer: body)[...]
    while let last = text.last, last.isWhitespace { text.removeLast() }
    if text == noHost { return true }
    guard text.hasPrefix(reset) else { return false }
    // Details of the transport may follow a comma.
    let reason = text.dropFirst(reset.count).prefix { $0 != "," }
    return unsentReasons.contains { $0 == reason }
  }
}

// GraphQL.
extension ResponseSigns {
  /// The longest response that is read for it. Servers write some hundred bytes.
  private static let maxDocumentLength = 4096
  private static let codes = ["PERSISTED_QUERY_NOT_FOUND", "PERSISTED_QUERY_NOT_SUPPORTED"].map {
    Array($0.utf8)
  }
  private static let data = JSONPointer(member: "data")
  private static let errors = JSONPointer(member: "errors")
  private static let code = JSONPointer("/errors/0/extensions/code")

  /// Whether the one error of a response is that the named document is not known. With a member `data` the execution
  /// had begun (GraphQL, section 7.1).
  private static func lacksDocument(_ body: ByteBuffer) -> Bool {
    guard body.readableBytes <= maxDocumentLength, let code else { return false }
    return body.withUnsafeReadableBytes { bytes in
      guard let document = try? JSONParser.parse(bytes), !document.hasDuplicates,
        case .absent = document.find(data), document.array(at: errors, maxElements: 1)?.elements.count == 1,
        case .string(let text) = document.find(code)
      else { return false }
      return codes.contains { $0.elementsEqual(text) }
    }
  }
}
