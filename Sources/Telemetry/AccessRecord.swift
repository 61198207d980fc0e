/// What is known of one request when it has ended: for its line in the access log and for the metrics. Never a key,
/// a token or a body.
public struct AccessRecord: Sendable {
  public var route: String?
  /// See `Metrics.number(ofRoute:)`; 0 where it met none.
  public var routeNumber = 0
  /// The client's address, the forwarded one where its proxy is believed; empty for a unix socket.
  public var client = ""
  public var method = ""
  public var status = 0
  public var outcome = RequestOutcome.cut
  /// Why Semel refused, where it did.
  public var refusal: RefusalReason?
  /// Where a replay came from.
  public var source: ReplaySource?
  /// Whose failure it was, where it failed.
  public var failure: FailureCategory?
  /// Whether it was refused because another delivery of its key counts.
  public var isDuplicateRefused = false
  public var attempt = 0
  /// What ended the attempt before, where this was not the first.
  public var retry: RetryCause?
  /// From the intent's first delivery on, across attempts.
  public var timeToSuccessMilliseconds: Int64?
  /// The first characters of a digest, empty where there is none.
  public var keyDigest = ""
  public var callerDigest = ""
  /// The record's id, as the backend was told; only of a request that was cut, whose outcome somebody may look up.
  public var recordID = ""
  public var requestBytes = 0
  public var responseBytes = 0
  /// From the head's arrival to the answer's end, in microseconds; of it, asking the store and the backend.
  public var totalMicroseconds: Int64 = 0
  public var claimMicroseconds: Int64 = 0
  public var upstreamMicroseconds: Int64 = 0
  public var recordMicroseconds: Int64 = 0
  public var hungUp = false
  /// The trace that it belongs to, where one is known.
  public var trace: RequestTrace?

  public init() {}
}
