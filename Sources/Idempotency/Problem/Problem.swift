import NIOCore
import Wire

/// A refusal by Semel itself, from the list in section 5 of the contract.
///
/// It is a class, so that every step that may throw it reserves only one word for it.
public final class Problem: Error, Sendable {
  public enum Code: String, Sendable, CaseIterable {
    case badRequest = "bad_request"
    case keyMissing = "key_missing"
    case keyInvalid = "key_invalid"
    case keyNotSupported = "key_not_supported"
    case callerUnknown = "caller_unknown"
    case payloadMismatch = "payload_mismatch"
    case inFlight = "in_flight"
    case outcomeUnknown = "outcome_unknown"
    case responseNotKept = "response_not_kept"
    case keyExpired = "key_expired"
    case requestTooLarge = "request_too_large"
    case requestTimeout = "request_timeout"
    case storeUnavailable = "store_unavailable"
    case storeUnreadable = "store_unreadable"
    case upstreamUnreachable = "upstream_unreachable"
    case overloaded = "overloaded"
    case quotaExceeded = "quota_exceeded"
    case notImplemented = "not_implemented"
    case noRoute = "no_route"
    case headerTooLarge = "header_too_large"
  }

  /// The `Retry-After` of a refusal for a reason that may be gone in a moment: the minimum that the field can express.
  public static let defaultPause: Milliseconds = 1000

  public let code: Code
  public let status: Int
  /// One sentence on what the client should do. It contains no part of the request's values.
  public let detail: String
  /// Whether a retry with the same key may succeed.
  public let isRetryable: Bool
  /// The number of whole seconds for `Retry-After`.
  public let retryAfter: Int64?
  /// The status of the response that was not kept.
  public let originalStatus: Int?
  /// The `Location` of the response that was not kept.
  public let location: String?
  /// The value of `WWW-Authenticate` (RFC 9110, section 11.6.1), if other credentials would be accepted.
  public let challenge: String?

  public init(
    _ code: Code, status: Int, detail: String, isRetryable: Bool, retryAfter: Int64? = nil,
    originalStatus: Int? = nil, location: String? = nil, challenge: String? = nil
  ) {
    self.code = code
    self.status = status
    self.detail = detail
    self.isRetryable = isRetryable
    self.retryAfter = retryAfter
    self.originalStatus = originalStatus
    self.location = location
    self.challenge = challenge
  }
}

extension Problem {
  /// The same refusal with another status.
  public func with(status: Int) -> Problem {
    Problem(
      code, status: status, detail: detail, isRetryable: isRetryable, retryAfter: retryAfter,
      originalStatus: originalStatus, location: location, challenge: challenge)
  }
}

extension Problem: Equatable {
  public static func == (left: Problem, right: Problem) -> Bool {
    left.code == right.code && left.status == right.status && left.detail == right.detail
      && left.isRetryable == right.isRetryable && left.retryAfter == right.retryAfter
      && left.originalStatus == right.originalStatus && left.location == right.location
      && left.challenge == right.challenge
  }
}

extension Problem {
  /// The path of the page that describes the codes.
  public static let documentPath = "/.well-known/idempotency"

  /// The problem's type (RFC 9457, section 3.1.1): a reference to its description.
  public var type: String { Self.documentPath + "#" + code.rawValue }

  /// The title, the same for all problems of one code.
  public var title: String { code.title }
}

extension Problem.Code {
  public var title: String {
    switch self {
    case .badRequest: "The request cannot be read safely"
    case .keyMissing: "An idempotency key is required"
    case .keyInvalid: "The idempotency key is not valid"
    case .keyNotSupported: "Idempotency keys are not supported here"
    case .callerUnknown: "The caller is not known"
    case .payloadMismatch: "The idempotency key was used with another payload"
    case .inFlight: "A request with this idempotency key is in progress"
    case .outcomeUnknown: "The outcome of the request is not known"
    case .responseNotKept: "The request was completed and its response was not kept"
    case .keyExpired: "The idempotency key has expired"
    case .requestTooLarge: "The request body is too large"
    case .requestTimeout: "The request took too long"
    case .storeUnavailable: "The record store is not available"
    case .storeUnreadable: "The record of this idempotency key cannot be read"
    case .upstreamUnreachable: "The backend was not reached"
    case .overloaded: "Too much is in progress"
    case .quotaExceeded: "The caller sends too much"
    case .notImplemented: "The request asks for what is not supported here"
    case .noRoute: "No route leads to a backend"
    case .headerTooLarge: "The request's header fields are too large"
    }
  }
}

extension Problem {
  /// The fields of the problem's response besides its framing: the content type, the prohibition to cache, the link to
  /// the description, and the advice on retries.
  public var fields: [(name: StaticString, value: String)] {
    var fields: [(name: StaticString, value: String)] = [
      ("Content-Type", "application/problem+json"),
      ("Cache-Control", "no-store"),
      ("Link", "<\(type)>; rel=\"describedby\""),
      ("X-Should-Retry", isRetryable ? "true" : "false"),
    ]
    if let retryAfter { fields.append(("Retry-After", String(retryAfter))) }
    if let challenge { fields.append(("WWW-Authenticate", challenge)) }
    return fields
  }

  /// The JSON document (RFC 9457). Its members are always in this order.
  public func body() -> ByteBuffer {
    var body = ByteBufferAllocator().buffer(capacity: 512)
    body.writeLiteral("{\"type\":")
    body.writeJSON(type)
    body.writeLiteral(",\"title\":")
    body.writeJSON(title)
    body.writeLiteral(",\"status\":")
    body.writeString(String(status))
    body.writeLiteral(",\"detail\":")
    body.writeJSON(detail)
    body.writeLiteral(",\"code\":")
    body.writeJSON(code.rawValue)
    body.writeLiteral(isRetryable ? ",\"retryable\":true" : ",\"retryable\":false")
    if let originalStatus {
      body.writeLiteral(",\"original_status\":")
      body.writeString(String(originalStatus))
    }
    if let location {
      body.writeLiteral(",\"location\":")
      body.writeJSON(location)
    }
    body.writeLiteral("}\n")
    return body
  }
}

extension ByteBuffer {
  fileprivate mutating func writeJSON(_ text: String) {
    var bytes: [UInt8] = []
    bytes.appendJSONString(text)
    writeBytes(bytes)
  }
}

// Refusals caused by the backend or by overload.
extension Problem {
  /// The backend was not reached, and the request was certainly not executed.
  public static var upstreamUnreachable: Problem {
    Problem(
      .upstreamUnreachable, status: 502,
      detail:
        "Send the same request with the same key again; the backend was not reached and this delivery was not executed.",
      isRetryable: true)
  }

  /// The backend has refused the request by a response of class *retry*, of which only the status can be read.
  public static var refusedForNow: Problem {
    Problem(
      .upstreamUnreachable, status: 502,
      detail:
        "Send the same request with the same key again; the backend refused it for now, by a response that cannot be read.",
      isRetryable: true)
  }

  /// The reason why no more requests are accepted.
  public enum Overload: Hashable, Sendable, CaseIterable {
    /// A limit of requests, bodies or waiters has been reached.
    case busy
    /// All connections to the backend are in use.
    case backend
    /// The process is shutting down.
    case draining
  }

  public static func overloaded(_ overload: Overload) -> Problem {
    let detail =
      switch overload {
      case .busy:
        "Send the same request with the same key again later; too much is in progress and this delivery was not executed."
      case .backend:
        "Send the same request with the same key again later; all connections to the backend are in use and this delivery was not executed."
      case .draining:
        "Send the same request with the same key again on a new connection; this server is shutting down and did not execute this delivery."
      }
    return Problem(
      .overloaded, status: 503, detail: detail, isRetryable: true, retryAfter: defaultPause.retryAfterSeconds)
  }
}
