import Idempotency
import Wire

/// Decides whether sending may begin, and what a failure means for the request.
///
/// Every sending passes this gate, and the gate opens once. This holds for a request that is passed through, too, since
/// the effect of its first sending is unknown. Only a request with a safe method, which no field overrides, and without
/// content, on a route that protects nothing, may be sent again (RFC 9110, section 9.2.2).
struct SendGate {
  private enum Refusal { case stale, sentBefore }

  private let permit: SendPermit?
  private let isRepeatable: Bool
  private(set) var hasOpened = false
  private var refusal: Refusal?

  init(_ request: UpstreamRequest) {
    permit = request.permit
    isProtected = request.permit != nil || request.isProtected
    isRepeatable =
      !isProtected && request.body.isNone && Self.isSafe(request.method) && !request.overridesMethod
  }

  /// Whether a later delivery of the request may be sent after this one: its route protects it, whether it has a record
  /// or runs without the store.
  let isProtected: Bool

  /// Whether a request that was sent may be sent a second time.
  var mayRepeat: Bool { isRepeatable && refusal == nil }

  /// Returns whether the request may be sent now. Takes the permit.
  mutating func open(now: @autoclosure () -> BootInstant) -> Bool {
    if hasOpened { return isRepeatable }
    invariant(!isRepeatable || permit == nil, "a claimed request may be sent twice")
    if let permit, !permit.take(now: now()) {
      refusal = permit.refusal == .stale ? .stale : .sentBefore
      return false
    }
    hasOpened = true
    invariant(refusal == nil, "a request is sent whose sending was refused")
    return true
  }

  /// Whether another attempt to connect is allowed, which would send no earlier than after `delay`.
  func allowsRetry(after delay: Milliseconds, now: @autoclosure () -> BootInstant) -> Bool {
    guard !hasOpened, refusal == nil else { return false }
    guard let permit else { return true }
    return now() + delay < permit.sendBefore
  }

  /// The failure that the end without a response means for the caller.
  func failure(_ reason: String) -> UpstreamFailure {
    invariant(refusal == nil || !hasOpened, "a request that was sent counts as refused")
    return switch refusal {
    case .stale: .notSent("the permit to send had expired")
    case .sentBefore: .responseLost("the permit to send was used before")
    case nil: hasOpened ? .responseLost(reason) : .notSent(reason)
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
