import Idempotency

/// The facts about one ended request, for the access log and for the metrics: no key, no token and no body.
/// Noncopyable, since a copy would retain each string.
public struct AccessLogEntry: ~Copyable, Sendable {
  /// The name of the route; `nil` if the request matched none.
  public var route: String?
  /// The row of the metrics that counts the request, by `Metrics.number(ofRoute:)`; 0 without a route.
  public var routeNumber = 0
  /// The route's path template, such as `/v1/orders/{id}`; `nil` if the route has none. Never the request's own path.
  public var pathTemplate: String?
  /// The client's address, as forwarded by a trusted proxy; `nil` for a Unix socket, and until the entry is needed.
  public var client: String?
  /// The request's method, as the client spelt it; `nil` until the entry is needed.
  public var method: String?
  /// The status of the response; `nil` if there was none.
  public var status: Int?
  /// The outcome; `cut` until another one is set.
  public var outcome = RequestOutcome.cut
  /// The problem that Semel refused the request with; `nil` if it did not refuse it.
  public var refusal: RefusalReason?
  /// The end that the request would have had; `nil` unless its route is shadowed.
  public var would: ShadowVerdict?
  /// The members by which a refused payload differs from the first one of its key; `nil` if they are not known.
  public var differs: String?
  /// The source of the replay; `nil` if the response is no replay.
  public var source: ReplaySource?
  /// The party at fault; `nil` if the request did not fail.
  public var failure: FailureCategory?
  /// True if Semel refused the request because another delivery of its key has precedence.
  public var isDuplicateRefused = false
  /// The number of the claim's attempt, from 1 on; `nil` if the request has no record.
  public var attempt: Int?
  /// The way in which the previous attempt ended; `nil` for a first attempt.
  public var retry: RetryCause?
  /// The time from the first delivery of the intent to its outcome, across all attempts, in milliseconds.
  public var timeToSuccessMilliseconds: Int64?
  /// The first characters of the key's digest; `nil` if the request has no key, or nobody needs it.
  public var keyDigest: String?
  /// The first characters of the caller's digest; `nil` if the request has no caller, or nobody needs it.
  public var callerDigest: String?
  /// Whether both digests are by the secret of all nodes, as those in records are.
  public var hasSharedDigests = false
  /// The way in which the outcome of the request's attempt, or of that it was refused for, was lost.
  public var loss: LossCause?
  /// The record's ID, as sent to the backend; `nil` if the request has no record.
  public var recordID: RecordID?
  /// The number of a batch's items; `nil` for any other request.
  public var items: Int?
  /// The IDs of the first records of a batch, with commas between them.
  public var itemRecords: String?
  /// The number of bytes received of the request's body.
  public var requestBytes = 0
  /// The number of bytes sent of the response, including its head.
  public var responseBytes = 0
  /// The time from the arrival of the head to the end of the response, in microseconds; `nil` before that.
  public var totalMicroseconds: Int64?
  /// The part of it for the claim, in microseconds; `nil` if there was none.
  public var claimMicroseconds: Int64?
  /// The part of it for the backend, in microseconds; `nil` if there was none.
  public var upstreamMicroseconds: Int64?
  /// The part of it for storing the outcome, in microseconds; `nil` if there was none.
  public var recordMicroseconds: Int64?
  /// Whether the client disconnected before the end of its response.
  public var hungUp = false
  /// The trace that the request belongs to, if any.
  public var trace: RequestTrace?

  public init() {}
}
