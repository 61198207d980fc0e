import Idempotency
import Telemetry
import Wire

extension Problem {
  /// The problem of a client whose bytes are not a request.
  public static func unreadable(_ error: WireError) -> Problem {
    switch error.status {
    case 431, 414: .headerTooLarge
    case 501: .notImplemented
    default: .badRequest(RequestFault(error))
    }
  }

  /// A passed-through request, which has no key, whose backend was not reached.
  static var passageNotBegun: Problem {
    Problem(
      .upstreamUnreachable, status: 502,
      detail: "Send the same request again; the backend was not reached and did not execute it.",
      isRetryable: true)
  }

  /// A passed-through request, which has no key, for which no connection to the backend was free.
  static var passageBusy: Problem {
    Problem(
      .overloaded, status: 503,
      detail:
        "Send the same request again later; all connections to the backend are in use and it did not execute this one.",
      isRetryable: true, retryAfter: 1)
  }

  /// A passed-through request whose response was lost. Nothing was recorded, and the backend may have run it.
  static func passageLost(_ loss: ResponseLoss) -> Problem {
    .responseLost(loss, retryAfter: nil)
  }
}

extension RequestFault {
  /// The fault as its client can mend it.
  fileprivate init(_ error: WireError) {
    switch error {
    case .badPath: self = .ambiguousPath
    case .missingHost, .repeatedHost, .badHost: self = .host
    case .badContentLength, .repeatedContentLength, .lengthAndTransferCoding, .badTransferCoding,
      .transferCodingInHTTP10:
      self = .bodyLength
    default: self = .malformed
    }
  }
}

extension RefusalReason {
  init(_ code: Problem.Code) {
    switch code {
    case .badRequest: self = .badRequest
    case .keyMissing: self = .keyMissing
    case .keyInvalid: self = .keyInvalid
    case .keyNotSupported: self = .keyNotSupported
    case .callerUnknown: self = .callerUnknown
    case .payloadMismatch: self = .payloadMismatch
    case .inFlight: self = .inFlight
    case .outcomeUnknown: self = .outcomeUnknown
    case .responseNotKept: self = .responseNotKept
    case .keyExpired: self = .keyExpired
    case .requestTooLarge: self = .requestTooLarge
    case .requestTimeout: self = .requestTimeout
    case .storeUnavailable: self = .storeUnavailable
    case .storeUnreadable: self = .storeUnreadable
    case .upstreamUnreachable: self = .upstreamUnreachable
    case .overloaded: self = .overloaded
    case .quotaExceeded: self = .quotaExceeded
    case .notImplemented: self = .notImplemented
    case .noRoute: self = .noRoute
    case .headerTooLarge: self = .headerTooLarge
    }
  }
}

extension FailureCategory {
  /// The side whose failure caused a refusal; `nil` if it only states that another delivery counts.
  ///
  /// - Parameter isDuplicate: Whether the refusal is about another delivery's record.
  init?(_ code: Problem.Code, isDuplicate: Bool) {
    switch code {
    case .callerUnknown: self = .auth
    case .badRequest, .keyMissing, .keyInvalid, .keyNotSupported, .payloadMismatch, .keyExpired,
      .requestTooLarge, .requestTimeout, .notImplemented, .noRoute, .headerTooLarge:
      self = .validation
    case .storeUnavailable, .storeUnreadable: self = .store
    case .upstreamUnreachable: self = .transport
    case .outcomeUnknown:
      guard !isDuplicate else { return nil }
      self = .transport
    case .overloaded, .quotaExceeded: self = .overload
    case .inFlight, .responseNotKept: return nil
    }
  }

  /// The side whose failure a backend's response shows; `nil` if it shows none.
  init?(status: Int) {
    switch status {
    case 401, 403, 407: self = .auth
    case 500...: self = .backend
    default: return nil
    }
  }
}

extension RetryCause {
  /// The end of the previous attempt; `nil` for the first attempt.
  init?(_ claim: Claim) {
    guard claim.ordinal > 1 else { return nil }
    self = claim.followsUnknown ? .unknown : claim.onlyRejectedSoFar ? .forgotten : .released
  }
}

extension RequestOutcome {
  init(_ label: ResponseLabel?) {
    switch label {
    case .executed, .executedUnkept: self = .executed
    case .replayed: self = .replayed
    case .ignored: self = .ignored
    case .unknown: self = .unknown
    case .unprotected: self = .unprotected
    case .notStored: self = .notStored
    case .shadow: self = .shadow
    case nil: self = .passed
    }
  }
}
