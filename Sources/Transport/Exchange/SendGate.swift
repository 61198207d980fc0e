import Idempotency
import NIOCore
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

/// The pace of an exchange's client: whether it is awaited, and since when it has moved too little. Pure: the time is an
/// argument.
///
/// A body whose first `step` bytes have not passed has a client that pauses within them, or else they would have been
/// here when the exchange began. The response begins anew: its first pause gives the client its whole time.
struct ClientPace {
  /// The number of bytes after which the pace is looked at: as many as are awaited before a request begins.
  static let step = 64 << 10

  /// Whether the exchange waits for the client's body.
  var isStarving = false
  /// Whether the pool knows the exchange as one that its client may hold up (`ConnectionPool.makeRoom`).
  var isTracked = false
  /// Whether reading the response is paused.
  private(set) var isPaused = false
  private var hasPaused = false
  /// The time at which the latest `step` bytes of a body had passed, or of the response's first pause; zero before.
  private(set) var movedAt = NIODeadline.uptimeNanoseconds(0)
  /// The number of bytes that have passed since.
  private var moved = 0

  /// Whether the client is awaited now: for more of its body, to which there is no response yet, or until it has taken
  /// what has arrived of the response.
  func isAwaited(hasHead: Bool, hasBody: Bool) -> Bool { isStarving && !hasHead || isPaused && hasBody }

  /// Notes whether reading the response is paused.
  mutating func setPaused(_ isPaused: Bool, now: @autoclosure () -> NIODeadline) {
    self.isPaused = isPaused
    guard isPaused, !hasPaused else { return }
    hasPaused = true
    restart(now())
  }

  /// Counts bytes that the client has sent or taken.
  mutating func didMove(_ count: Int, now: @autoclosure () -> NIODeadline) {
    moved += count
    if moved >= Self.step { restart(now()) }
  }

  private mutating func restart(_ now: NIODeadline) {
    moved = 0
    movedAt = now
  }
}
