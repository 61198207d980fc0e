import Idempotency

/// Decides whether a sending may begin, and what a failure says about the request.
///
/// Every sending passes this gate, and it opens once: also for a request that is passed through, since nobody knows
/// what the first sending did. Only a safe method without content and without a permit may be sent again (RFC 9110, section 9.2.2).
struct SendGate {
  private enum Refusal { case stale, sentBefore }

  private let permit: SendPermit?
  private let isRepeatable: Bool
  private(set) var hasOpened = false
  private var refusal: Refusal?

  init(_ request: UpstreamRequest) {
    permit = request.permit
    isRepeatable = permit == nil && request.body.isNone && Self.isSafe(request.method)
  }

  /// Whether a request that was sent may be sent once more.
  var mayRepeat: Bool { isRepeatable && refusal == nil }

  /// Whether the request may be sent now.
  mutating func open(now: @autoclosure () -> BootInstant) -> Bool {
    if hasOpened { return isRepeatable }
    if let permit, !permit.take(now: now()) {
      refusal = permit.refusal == .stale ? .stale : .sentBefore
      return false
    }
    hasOpened = true
    return true
  }

  /// Whether connecting may be tried once more, to send no earlier than after `delay`.
  func allowsRetry(after delay: Milliseconds, now: @autoclosure () -> BootInstant) -> Bool {
    guard !hasOpened, refusal == nil else { return false }
    guard let permit else { return true }
    return now() + delay < permit.sendBefore
  }

  /// What the end without an answer means.
  func failure(_ reason: String) -> UpstreamFailure {
    switch refusal {
    case .stale: .notSent("the permit to send had grown stale")
    case .sentBefore: .answerLost("the permit to send was used before")
    case nil: hasOpened ? .answerLost(reason) : .notSent(reason)
    }
  }

  private static func isSafe(_ method: String) -> Bool {
    method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE"
  }
}

extension RequestBody {
  var isNone: Bool {
    if case .none = self { true } else { false }
  }
}
