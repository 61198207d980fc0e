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
