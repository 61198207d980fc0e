import Idempotency
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
