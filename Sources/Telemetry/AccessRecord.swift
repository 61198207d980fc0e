/// The facts about one ended request, for its entry in the access log and for the metrics.
///
/// It never contains a key, a token or a body.
public struct AccessRecord: Sendable {
  public var route: String?
  /// The route's number, as `Metrics.number(ofRoute:)` returns it; 0 if the request matched no route.
  public var routeNumber = 0
  /// The client's address: the forwarded one if the proxy in front is trusted. Empty for a Unix socket.
  public var client = ""
  public var method = ""
  public var status = 0
  public var outcome = RequestOutcome.cut
  /// The problem that Semel refused the request with; `nil` if it did not refuse it.
  public var refusal: RefusalReason?
  /// The source of the replay; `nil` if the response is no replay.
  public var source: ReplaySource?
  /// The party at fault; `nil` if the request did not fail.
  public var failure: FailureCategory?
  /// True if Semel refused the request because another delivery of its key has precedence.
  public var isDuplicateRefused = false
  public var attempt = 0
  /// The way in which the previous attempt ended; `nil` for a first attempt.
  public var retry: RetryCause?
  /// The time from the first delivery of the intent to its outcome, across all attempts, in milliseconds.
  public var timeToSuccessMilliseconds: Int64?
  /// The first characters of the key's digest; empty if the request has no key.
  public var keyDigest = ""
  public var callerDigest = ""
  /// The record's ID, as sent to the backend. Set only for a request whose response was cut off, so that an operator
  /// can look up its outcome; empty otherwise.
  public var recordID = ""
  public var requestBytes = 0
  public var responseBytes = 0
  /// The time from the arrival of the head to the end of the response, in microseconds.
  ///
  /// The next three members are parts of it: the claim, the wait for the backend, and the storing of the outcome. A
  /// part that did not take place is 0.
  public var totalMicroseconds: Int64 = 0
  public var claimMicroseconds: Int64 = 0
  public var upstreamMicroseconds: Int64 = 0
  public var recordMicroseconds: Int64 = 0
  public var hungUp = false
  /// The trace that the request belongs to, if any.
  public var trace: RequestTrace?

  public init() {}
}
