import Foundation
import TestSupport
import Testing

extension ReceivedResponse {
  /// The exchange as Semel states it.
  var idempotencyStatus: String? { self["Idempotency-Status"] }

  /// The time that a field states, an HTTP date.
  func date(_ name: String) -> Date? {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(identifier: "GMT")
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return self[name].flatMap { format.date(from: $0) }
  }
}

/// The response is the backend's, run just now.
///
/// - Parameter isKept: Whether a retry gets it, too.
func expectExecuted(
  _ response: ReceivedResponse, _ status: Int = 201, isKept: Bool = true,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(response.status == status, "\(response.text)", sourceLocation: sourceLocation)
  let label = isKept ? "executed" : "executed; kept=no"
  #expect(response.idempotencyStatus == label, "\(response.text)", sourceLocation: sourceLocation)
  #expect(response["Idempotent-Replayed"] == nil, sourceLocation: sourceLocation)
}

/// The response is the recorded one.
func expectReplayed(
  _ response: ReceivedResponse, of first: ReceivedResponse, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(response.status == first.status, "\(response.text)", sourceLocation: sourceLocation)
  #expect(response.body == first.body, sourceLocation: sourceLocation)
  expectReplayed(response, first.status, sourceLocation: sourceLocation)
}

/// The response is a recorded one with this status.
func expectReplayed(
  _ response: ReceivedResponse, _ status: Int, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(response.status == status, "\(response.text)", sourceLocation: sourceLocation)
  #expect(response.idempotencyStatus == "replayed", "\(response.text)", sourceLocation: sourceLocation)
  #expect(response["Idempotent-Replayed"] == "true", sourceLocation: sourceLocation)
  #expect(response["X-Should-Retry"] == nil, sourceLocation: sourceLocation)
}

/// The response is Semel's own, and in all its parts as section 5 of the contract says.
func expectRefused(
  _ response: ReceivedResponse, _ status: Int, _ code: String, retryable: Bool,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(response.status == status, "\(response.text)", sourceLocation: sourceLocation)
  #expect(response["Cache-Control"] == "no-store", sourceLocation: sourceLocation)
  #expect(
    response["Link"]?.hasSuffix(#">; rel="describedby""#) == true, "\(response.fields)",
    sourceLocation: sourceLocation)
  #expect(response["X-Should-Retry"] == "\(retryable)", "\(response.text)", sourceLocation: sourceLocation)
  guard let problem = response.problem else {
    Issue.record("no problem document: \(response.fields) \(response.text)", sourceLocation: sourceLocation)
    return
  }
  #expect(problem.code == code, sourceLocation: sourceLocation)
  #expect(problem.type == "/.well-known/idempotency#\(code)", sourceLocation: sourceLocation)
  #expect(problem.status == status, sourceLocation: sourceLocation)
  #expect(problem.retryable == retryable, sourceLocation: sourceLocation)
  #expect(
    !problem.title.isEmpty && problem.detail.hasSuffix("."), "\(problem)", sourceLocation: sourceLocation)
}

/// `Retry-After` says whole seconds, at least one.
func expectRetryAfter(_ response: ReceivedResponse, sourceLocation: SourceLocation = #_sourceLocation) {
  let seconds = response["Retry-After"].flatMap { Int($0) }
  #expect((seconds ?? 0) >= 1, "\(response["Retry-After"] ?? "none")", sourceLocation: sourceLocation)
}
