import Idempotency
import Yams

/// A status with which a route's requests may be refused, and the codes that come with it.
struct Refusal: Equatable {
  let status: Int
  let codes: [Problem.Code]

  /// The refusals of a route that a client of one operation may meet, by status, without those of every request.
  static func all(of policy: RoutePolicy) -> [Refusal] {
    var codes: [Int: [Problem.Code]] = [:]
    for code in Problem.Code.allCases where meets(code, on: policy) {
      for status in statuses(of: code, on: policy) { codes[status, default: []].append(code) }
    }
    return codes.sorted { $0.key < $1.key }.map { Refusal(status: $0.key, codes: $0.value) }
  }

  private static func statuses(of code: Problem.Code, on policy: RoutePolicy) -> [Int] {
    let changed: Int? =
      switch code {
      case .payloadMismatch: policy.mismatchStatus
      case .inFlight: policy.inFlightStatus
      case .keyExpired: policy.expiredStatus
      default: nil
      }
    return changed.map { [$0] } ?? code.statuses
  }

  private static func meets(_ code: Problem.Code, on policy: RoutePolicy) -> Bool {
    switch code {
    case .keyMissing: policy.idempotency == .required && policy.key.from != [.payload]
    case .keyInvalid: policy.key.from != [.payload]
    case .callerUnknown: policy.caller?.isShared == false
    case .keyNotSupported, .headerTooLarge, .notImplemented, .noRoute: false
    case .badRequest, .payloadMismatch, .inFlight, .outcomeUnknown, .responseNotKept, .keyExpired,
      .requestTooLarge, .requestTimeout, .storeUnavailable, .storeUnreadable, .upstreamUnreachable,
      .overloaded,
      .quotaExceeded:
      true
    }
  }

  /// The response object, for a status that the operation does not describe.
  func response(as format: ErrorFormat) -> Node {
    let texts = codes.map { "\($0.title) (\($0.rawValue))." }
    var members: [(name: String, value: Node)] = [("description", .text(texts.joined(separator: " ")))]
    if codes.contains(where: { $0.isRetryable != false }) {
      members.append(("headers", .members([("Retry-After", .reference(.headers, Components.retryAfter))])))
    }
    members.append(("content", .members([(Self.mediaType(format), Self.content(format))])))
    return .members(members)
  }

  /// A response of the operation's own with the refusal's media type beside its own, unless it has that already.
  func joined(to response: Node, as format: ErrorFormat) -> Node {
    var response = response
    var content = response.member("content") ?? .members([])
    guard content.member(Self.mediaType(format)) == nil else { return response }
    content.set(Self.mediaType(format), to: Self.content(format))
    response.set("content", to: content)
    return response
  }

  private static func mediaType(_ format: ErrorFormat) -> String {
    format == .problem ? "application/problem+json" : "application/json"
  }

  private static func content(_ format: ErrorFormat) -> Node {
    let name = format == .problem ? Components.problem : Components.otherError
    return .members([("schema", .reference(.schemas, name))])
  }
}
