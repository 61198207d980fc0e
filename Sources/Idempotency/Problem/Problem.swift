/// A refusal of Semel's own, as section 4 of the contract lists them.
package struct Problem: Error, Hashable, Sendable {
  package enum Code: String, Sendable, CaseIterable {
    case badRequest = "bad_request"
    case keyMissing = "key_missing"
    case keyInvalid = "key_invalid"
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
    case notImplemented = "not_implemented"
    case noRoute = "no_route"
    case headerTooLarge = "header_too_large"
  }

  package var code: Code
  package var status: Int
  /// One sentence that says what to do. Nothing of the request is echoed.
  package var detail: String
  /// Whether the same key may yet get an answer.
  package var isRetryable: Bool
  /// In whole seconds, for `Retry-After`.
  package var retryAfter: Int64?
  /// Of the answer that was not kept.
  package var originalStatus: Int?
  package var location: String?

  package init(
    _ code: Code, status: Int, detail: String, isRetryable: Bool, retryAfter: Int64? = nil,
    originalStatus: Int? = nil, location: String? = nil
  ) {
    self.code = code
    self.status = status
    self.detail = detail
    self.isRetryable = isRetryable
    self.retryAfter = retryAfter
    self.originalStatus = originalStatus
    self.location = location
  }
}
