/// What allows a claimed request to be sent: once, and only while its grant is fresh.
///
/// In Tests/Model/claim.pml it is `permit`; without it (SEND_STALE), or without its margin (NO_MARGIN), the model
/// has two owners send. Confined to the event loop of its exchange. The transport asks `take` at the last moment
/// before the first byte.
public final class SendPermit: @unchecked Sendable {
  /// A send begins no later than this long before the lease's end, as the owner's own clock counts it.
  public static func margin(of lease: Milliseconds) -> Milliseconds {
    max(Milliseconds(lease.count / 10), Milliseconds(min(100, lease.count / 2)))
  }

  public enum Refusal: Equatable, Sendable {
    /// The request was sent before. A second sending would run it twice.
    case alreadySent
    /// The last acknowledged grant was asked for too long ago: somebody else may own the record.
    case stale
  }

  /// From here on the grant is stale.
  private(set) public var sendBefore: BootInstant
  private(set) public var isSent = false
  private(set) public var refusal: Refusal?

  public init(askedAt: BootInstant, lease: Milliseconds) {
    sendBefore = askedAt + (lease - Self.margin(of: lease))
  }

  /// A renewal that was asked for at `askedAt` was acknowledged.
  public func renewed(askedAt: BootInstant, lease: Milliseconds) {
    sendBefore = max(sendBefore, askedAt + (lease - Self.margin(of: lease)))
  }

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
    return true
  }
}
