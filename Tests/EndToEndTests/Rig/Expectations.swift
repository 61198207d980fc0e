import TestSupport
import Testing

extension Answer {
  /// The exchange as Semel states it.
  var idempotencyStatus: String? { self["Idempotency-Status"] }
}

/// The response is the backend's, run just now.
func expectExecuted(
  _ answer: Answer, _ status: Int = 201, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(answer.status == status, "\(answer.text)", sourceLocation: sourceLocation)
  #expect(answer.idempotencyStatus == "executed", "\(answer.text)", sourceLocation: sourceLocation)
  #expect(answer["Idempotent-Replayed"] == nil, sourceLocation: sourceLocation)
}

/// The response is the recorded one.
func expectReplayed(
  _ answer: Answer, of first: Answer, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(answer.status == first.status, "\(answer.text)", sourceLocation: sourceLocation)
  #expect(answer.body == first.body, sourceLocation: sourceLocation)
  expectReplayed(answer, first.status, sourceLocation: sourceLocation)
}

/// The response is a recorded one with this status.
func expectReplayed(_ answer: Answer, _ status: Int, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(answer.status == status, "\(answer.text)", sourceLocation: sourceLocation)
  #expect(answer.idempotencyStatus == "replayed", "\(answer.text)", sourceLocation: sourceLocation)
  #expect(answer["Idempotent-Replayed"] == "true", sourceLocation: sourceLocation)
  #expect(answer["X-Should-Retry"] == nil, sourceLocation: sourceLocation)
}

/// The response is Semel's own, and in all its parts as section 4 of the contract says.
func expectRefused(
  _ answer: Answer, _ status: Int, _ code: String, retryable: Bool,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(answer.status == status, "\(answer.text)", sourceLocation: sourceLocation)
  #expect(answer["Cache-Control"] == "no-store", sourceLocation: sourceLocation)
  #expect(
    answer["Link"]?.hasSuffix(#">; rel="describedby""#) == true, "\(answer.fields)",
    sourceLocation: sourceLocation)
  #expect(answer["X-Should-Retry"] == "\(retryable)", "\(answer.text)", sourceLocation: sourceLocation)
  guard let problem = answer.problem else {
    Issue.record("no problem document: \(answer.fields) \(answer.text)", sourceLocation: sourceLocation)
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
func expectRetryAfter(_ answer: Answer, sourceLocation: SourceLocation = #_sourceLocation) {
  let seconds = answer["Retry-After"].flatMap { Int($0) }
  #expect((seconds ?? 0) >= 1, "\(answer["Retry-After"] ?? "none")", sourceLocation: sourceLocation)
}
