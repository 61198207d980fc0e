import Wire

/// The permission to send a claimed request: once, and only while its grant is fresh.
///
/// The transport calls `take` at the last moment before the first byte. In Tests/Model/claim.pml it is `permit`;
/// without it (SEND_STALE), or without its margin (NO_MARGIN), two owners send in the model. A permit is confined to
/// the event loop of its exchange.
public final class SendPermit: @unchecked Sendable {
  /// The safety margin of a lease: no send begins later than this before the lease's end, by the owner's own clock. It
  /// is a tenth of the lease, and at least 100 ms or half of the lease, whichever is shorter.
  public static func margin(of lease: Milliseconds) -> Milliseconds {
    max(Milliseconds(lease.count / 10), Milliseconds(min(100, lease.count / 2)))
  }

  /// The reason why a send is not permitted.
  public enum Refusal: Equatable, Sendable {
    /// The request was sent before. A second send would execute it twice.
    case alreadySent
    /// The last acknowledged grant was requested too long ago, and the record may have another owner.
    case stale
  }

  /// The time from which the grant is stale.
  public var sendBefore: BootInstant { parts.reduce(ownSendBefore) { min($0, $1.sendBefore) } }
  private var ownSendBefore: BootInstant
  /// The permits that must be fresh as well.
  private let parts: [SendPermit]
  private(set) public var isSent = false
  /// The reason of the last refused `take`; `nil` if none was refused.
  private(set) public var refusal: Refusal?

  public init(requestedAt: BootInstant, lease: Milliseconds) {
    ownSendBefore = requestedAt + (lease - Self.margin(of: lease))
    parts = []
    invariant(ownSendBefore <= requestedAt + lease, "a permit outlives its lease")
    invariant(ownSendBefore >= requestedAt, "a permit ends before its grant was requested")
  }

  /// Creates the permission to send one request for several claims, as long as the grants of all are fresh. To take it
  /// takes the permits of all.
  public init(all parts: [SendPermit]) {
    invariant(!parts.isEmpty, "a request is sent for no claim")
    ownSendBefore = BootInstant(nanoseconds: .max)
    self.parts = parts
  }

  /// Extends the permit after the acknowledgement of a renewal that was requested at `requestedAt`.
  public func renewed(requestedAt: BootInstant, lease: Milliseconds) {
    invariant(ownSendBefore > Self.never, "a revoked permit is renewed")
    invariant(parts.isEmpty, "the permit of several claims is renewed by one of them")
    ownSendBefore = max(ownSendBefore, requestedAt + (lease - Self.margin(of: lease)))
  }

  /// Ends the permit after the store has replied that the record has another owner, or none.
  public func revoke() { ownSendBefore = BootInstant(nanoseconds: 0) }

  /// The end of a permit that was revoked.
  private static var never: BootInstant { BootInstant(nanoseconds: 0) }

  /// Whether the first byte may be written now. True at most once in the life of a permit.
  public func take(now: BootInstant) -> Bool {
    if isSent {
      refusal = .alreadySent
      return false
    }
    guard now < sendBefore else {
      refusal = .stale
      return false
    }
    isSent = true
    for part in parts {
      invariant(!part.isSent, "one of several claims is sent a second time")
      part.isSent = true
    }
    return true
  }
}
