import HTTPTypes

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The table of classes: what a response means for its intent. The first line that decides counts.
///
/// A rule of the application's own comes first, then Semel's mark of the outcome, then advice for this response (a
/// problem's code, `X-Should-Retry`, `Idempotent-Replayed`), and last the status alone.
package struct Classifier: Sendable {
  private let rules: [ClassRule]

  package init(rules: [ClassRule] = []) {
    self.rules = rules
  }

  package func verdict(on response: Response, to path: String, now: Date) -> Verdict {
    var verdict =
      byRule(response, path) ?? byMark(response) ?? byCode(response) ?? byAdvice(response)
      ?? byStatus(response)
    verdict.retryAfter = ServerAdvice.retryAfter(response.fields, now: now)
    verdict.expires = response.fields[.idempotencyExpires].flatMap(ServerAdvice.date)
    verdict.isThrottled = response.status.code == 429
    if verdict.response == nil { verdict.response = response }
    return verdict
  }

  private func byRule(_ response: Response, _ path: String) -> Verdict? {
    let status = response.status.code
    guard let rule = rules.first(where: { $0.status == status && path.hasPrefix($0.pathPrefix) }) else {
      return nil
    }
    var verdict = Verdict(rule.deliveryClass)
    verdict.isProven = true
    verdict.mayHaveRun = rule.deliveryClass == .unknown
    return verdict
  }

  /// Semel's own mark, `Idempotency-Status`.
  private func byMark(_ response: Response) -> Verdict? {
    let mark = response.fields[.idempotencyStatus]?.prefix { $0 != ";" && $0 != " " }
    switch mark {
    case "executed", "batch": return outcome(response, wasReplayed: false)
    case "replayed": return outcome(response, wasReplayed: true)
    case "not-stored": return notStored(response)
    case "unknown":
      var verdict = Verdict(.unknown)
      verdict.mayHaveRun = true
      verdict.isRetryable = response.problem?.isRetryable ?? ServerAdvice.shouldRetry(response.fields) ?? true
      return verdict
    case "ignored", "unprotected", "shadow": return unprotected(response)
    default: return nil
    }
  }

  private func outcome(_ response: Response, wasReplayed: Bool) -> Verdict {
    var verdict = Verdict(response.status.code < 400 ? .success : .permanent)
    verdict.isProven = true
    verdict.wasReplayed = wasReplayed
    return verdict
  }

  /// Not executed for now. A redirect to the same key elsewhere, and missing rights, stay as they are.
  private func notStored(_ response: Response) -> Verdict {
    switch response.status.code {
    case 401, 407: Verdict(.credentials)
    case 307, 308, 403: Verdict(.permanent)
    default: Verdict(.temporary)
    }
  }

  /// The backend's response to a request that Semel did not protect: a repetition may run it twice.
  private func unprotected(_ response: Response) -> Verdict {
    switch response.status.code {
    case ..<400: return Verdict(.success)
    case 401, 407: return Verdict(.credentials)
    case 429: return Verdict(.temporary)
    case 400..<500: return Verdict(.permanent)
    default:
      var verdict = Verdict(.unknown)
      verdict.mayHaveRun = true
      verdict.isRetryable = false
      return verdict
    }
  }

  /// A refusal by Semel itself.
  private func byCode(_ response: Response) -> Verdict? {
    guard let problem = response.problem, let code = problem.code else { return nil }
    switch code {
    case "in_flight": return Verdict(.inFlight)
    case "outcome_unknown":
      var verdict = Verdict(.unknown)
      verdict.mayHaveRun = true
      verdict.isRetryable = problem.isRetryable ?? ServerAdvice.shouldRetry(response.fields) ?? true
      return verdict
    case "response_not_kept": return notKept(response, problem)
    case "key_expired":
      var verdict = Verdict(.unknown)
      verdict.mayHaveRun = true
      verdict.isRetryable = false
      return verdict
    case "caller_unknown": return Verdict(problem.isRetryable == true ? .temporary : .credentials)
    default:
      guard let isRetryable = problem.isRetryable ?? ServerAdvice.shouldRetry(response.fields) else {
        return nil
      }
      return Verdict(isRetryable ? .temporary : .permanent)
    }
  }

  /// The operation was carried out, with `original_status`, and its response is gone.
  private func notKept(_ response: Response, _ problem: Problem) -> Verdict {
    let status = problem.originalStatus ?? 200
    var head = HTTPResponse(status: .init(code: (200...599).contains(status) ? status : 200))
    head.headerFields[.contentType] = response.fields[.contentType]
    head.headerFields[.location] = problem.location
    let kept = Response(head, body: response.body)
    var verdict = outcome(kept, wasReplayed: true)
    verdict.response = kept
    return verdict
  }

  /// The conventions of Stripe and its like: a replay is the outcome, and a field says whether to retry.
  private func byAdvice(_ response: Response) -> Verdict? {
    if response.fields[.idempotentReplayed] == "true" { return outcome(response, wasReplayed: true) }
    guard let shouldRetry = ServerAdvice.shouldRetry(response.fields) else { return nil }
    guard shouldRetry else {
      return [401, 407].contains(response.status.code) ? Verdict(.credentials) : final(response)
    }
    var verdict = Verdict(response.status.code == 409 ? .inFlight : .temporary)
    verdict.mayHaveRun = response.status.code >= 500
    return verdict
  }

  private func final(_ response: Response) -> Verdict {
    var verdict = Verdict(response.status.code < 400 ? .success : .permanent)
    verdict.isProven = response.status.code >= 500
    return verdict
  }

  /// A server of which nothing else is known. An unknown 4xx is permanent, an unknown 5xx temporary.
  private func byStatus(_ response: Response) -> Verdict {
    let hasRetryAfter = response.fields[.retryAfter] != nil
    switch response.status.code {
    case ..<400 where ![307, 308].contains(response.status.code): return Verdict(.success)
    case 401, 407: return Verdict(.credentials)
    case 408, 425, 429: return Verdict(.temporary)
    case 409 where hasRetryAfter: return Verdict(.inFlight)
    case 503 where hasRetryAfter: return Verdict(.temporary)
    case ..<500: return Verdict(.permanent)
    case 502, 503, 504, 520, 524, 527:
      var verdict = Verdict(.unknown)
      verdict.mayHaveRun = true
      return verdict
    default:
      var verdict = Verdict(.temporary)
      verdict.mayHaveRun = true
      return verdict
    }
  }
}
