// Refusals caused by the key's record.
extension Problem {
  /// The key was used with another payload.
  ///
  /// - Parameter status: The route's `mismatch_status`.
  public static func payloadMismatch(status: Int) -> Problem {
    Problem(
      .payloadMismatch, status: status,
      detail:
        "Use a new key for a new operation, or retry with exactly the payload that was first sent with this key.",
      isRetryable: false)
  }

  /// Another delivery of the same request is in flight.
  ///
  /// - Parameter status: The route's `in_flight_status`.
  public static func inFlight(retryAfter: Milliseconds, status: Int = 409) -> Problem {
    Problem(
      .inFlight, status: status,
      detail:
        "Wait and send the same request with the same key again; the first delivery of it has not ended yet.",
      isRetryable: true, retryAfter: retryAfter.retryAfterSeconds)
  }

  /// The record's outcome is unknown.
  ///
  /// - Parameter retryAfter: The time until it may have settled; `nil` if only an operator or a late response can end
  ///   it.
  public static func outcomeUnknown(retryAfter: Milliseconds?) -> Problem {
    Problem(
      .outcomeUnknown, status: 409, detail: unknownDetail(retryAfter: retryAfter),
      isRetryable: retryAfter != nil, retryAfter: retryAfter?.retryAfterSeconds)
  }

  /// The way in which this delivery's own response was lost.
  public enum ResponseLoss: Hashable, Sendable, CaseIterable {
    /// The connection broke, the response was cut short, or it could not be recorded.
    case broken
    case timedOut
  }

  /// This delivery was sent, and its response is lost.
  public static func responseLost(_ loss: ResponseLoss, retryAfter: Milliseconds?) -> Problem {
    Problem(
      .outcomeUnknown, status: loss == .timedOut ? 504 : 502, detail: unknownDetail(retryAfter: retryAfter),
      isRetryable: retryAfter != nil, retryAfter: retryAfter?.retryAfterSeconds)
  }

  /// The words for those who write clients: what to show their users, and whom to turn to.
  private static func unknownDetail(retryAfter: Milliseconds?) -> String {
    if retryAfter != nil {
      "Show that the request is still being processed, and send it again later with the same key; whether it was executed is not known yet, and a new key could execute it twice."
    } else {
      "Show that the request may have taken effect, do not repeat it with a new key, and ask the support of this API what became of it; whether it was executed is not known."
    }
  }

  /// The request was completed, and its response was not kept.
  ///
  /// - Parameters:
  ///   - status: The status of the first response.
  ///   - location: The `Location` of the first response, if it had one.
  public static func responseNotKept(status: Int, location: String?) -> Problem {
    Problem(
      .responseNotKept, status: 409,
      detail:
        "Do not repeat the operation, which was completed; look its result up, since its response was not kept.",
      isRetryable: false, originalStatus: status, location: location)
  }

  /// The results of a batch are larger together than a response may be; each is recorded.
  public static func resultTooLarge(status: Int) -> Problem {
    Problem(
      .responseNotKept, status: 409,
      detail:
        "Do not repeat the operation, which was completed; send this item alone with the same key for its result, since the results of the batch are too large together.",
      isRetryable: false, originalStatus: status)
  }

  /// The backend has refused the batch that contained the item, by a response of class *retry*.
  public static var batchNotExecuted: Problem {
    Problem(
      .upstreamUnreachable, status: 502,
      detail:
        "Send the item again with the same key; the backend refused the batch it was in for now.",
      isRetryable: true)
  }

  /// The record's retention is over, and only its tombstone is left.
  public static var keyExpired: Problem {
    Problem(
      .keyExpired, status: 409,
      detail:
        "Look the operation's result up, and use a new key only for a new operation; this key's response is no longer kept.",
      isRetryable: false)
  }

  /// The request was first sent before the time from which every record is remembered.
  public static var firstSentTooLongAgo: Problem {
    Problem(
      .keyExpired, status: 412,
      detail:
        "Look the operation's result up before you send it with a new id; it was first sent longer ago than ids are remembered here.",
      isRetryable: false)
  }

  /// The store is unavailable, or must not be used.
  public static func storeUnavailable() -> Problem {
    Problem(
      .storeUnavailable, status: 503,
      detail:
        "Send the same request with the same key again later; this delivery was not executed because it could not be recorded.",
      isRetryable: true, retryAfter: defaultPause.retryAfterSeconds)
  }

  /// An inquiry about an earlier request finds no store. It says nothing of that request.
  public static func recordUnavailable() -> Problem {
    Problem(
      .storeUnavailable, status: 503,
      detail:
        "Ask again later; the record of the request cannot be read now, and whether the request was executed does not follow from that.",
      isRetryable: true, retryAfter: defaultPause.retryAfterSeconds)
  }

  /// The record is of another version or damaged. The problem is retryable, since a client that gets a final refusal
  /// would make a new key.
  public static func storeUnreadable() -> Problem {
    Problem(
      .storeUnreadable, status: 503,
      detail:
        "Send the same request with the same key again later; a record of it exists and cannot be read here.",
      isRetryable: true, retryAfter: defaultPause.retryAfterSeconds)
  }
}
