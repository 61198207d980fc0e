/// What is known of one request when it has ended: for its line in the access log and for the metrics. Never a key,
/// a token or a body.
package struct AccessRecord: Sendable {
  package var route: String?
  /// See `Metrics.number(ofRoute:)`; 0 where it met none.
  package var routeNumber = 0
  /// The client's address, the forwarded one where its proxy is believed; empty for a unix socket.
  package var client = ""
  package var method = ""
  package var status = 0
  package var outcome = RequestOutcome.cut
  /// Why Semel refused, where it did.
  package var refusal: RefusalReason?
  /// Where a replay came from.
  package var source: ReplaySource?
  /// Whose failure it was, where it failed.
  package var failure: FailureCategory?
  /// Whether it was refused because another delivery of its key counts.
  package var isDuplicateRefused = false
  package var attempt = 0
  /// What ended the attempt before, where this was not the first.
  package var retry: RetryCause?
  /// From the intent's first delivery on, across attempts.
  package var timeToSuccessMilliseconds: Int64?
  /// The first characters of a digest, empty where there is none.
  package var keyDigest = ""
  package var callerDigest = ""
  package var requestBytes = 0
  package var responseBytes = 0
  /// From the head's arrival to the answer's end, in microseconds; of it, asking the store and the backend.
  package var totalMicroseconds: Int64 = 0
  package var claimMicroseconds: Int64 = 0
  package var upstreamMicroseconds: Int64 = 0
  package var recordMicroseconds: Int64 = 0
  package var hungUp = false
  /// The trace that it belongs to, where one is known.
  package var trace: RequestTrace?

  package init() {}
}
