import NIOCore
import Wire

/// A claim by which no request is sent, and the end that its record gets for that.
///
/// This file decides on the claims of deliveries that are answered without a send. Two others are decided elsewhere: a
/// claim that too few replicas have (`RedisStore.giveBack`), and that of an owner whose process ends before it has sent
/// the request (`RecordRun`).
public struct UnusedClaim: Sendable, Equatable {
  public let claim: Claim
  /// A release, or the mark as unknown.
  public let end: RecordRun.End
  /// Whether the store has granted the claim; false if its reply was lost.
  public let isGranted: Bool

  private init(_ claim: Claim, _ end: RecordRun.End, isGranted: Bool = true) {
    self.claim = claim
    self.end = end
    self.isGranted = isGranted
  }

  /// Gives back a granted claim.
  public static func givenBack(_ claim: Claim, by policy: RoutePolicy) -> UnusedClaim {
    UnusedClaim(claim, .released(claim.unusedRelease(keeping: policy.uncountedRelease)))
  }

  /// Gives back a claim that the store may have granted, since its reply was lost.
  ///
  /// A release reads the id, the owner and the fingerprint. The rest of a grant is not known without the reply.
  public static func givenBack(_ request: ClaimRequest) -> UnusedClaim {
    let claim = Claim(
      id: request.id, owner: request.owner, fingerprint: request.fingerprint, attempt: 0,
      firstSeen: StoreInstant(milliseconds: 0), followsUnknown: false, onlyRejectedSoFar: false,
      lease: request.lease, unknownRetention: request.unknownRetention, remember: request.remember,
      requestedAt: BootInstant(nanoseconds: 0), attribution: request.attribution)
    return UnusedClaim(claim, .released(request.unusedRelease), isGranted: false)
  }

  /// Keeps a record unknown whose request may have run: one that the claim has taken over without a verdict about its
  /// last attempt, or that this process has run without the store's knowledge. It must not become free.
  public static func keptUnknown(_ claim: Claim) -> UnusedClaim { UnusedClaim(claim, .unknown(nil)) }
}

extension Claim {
  /// The release of a granted claim by which nothing was sent. A record that it made is deleted: the next payload may
  /// be another one.
  ///
  /// - Parameter kept: The release of any other record.
  public func unusedRelease(keeping kept: Release) -> Release { onlyRejectedSoFar ? .deleted : kept }
}

/// The backend's `Retry-After` (RFC 9110, section 10.2.3).
public enum RetryAfter: Sendable, Equatable {
  case none
  /// The span from now on.
  case span(Milliseconds)
  /// The field is there and is neither a number of seconds nor a date, or is there twice.
  case unreadable

  /// - Parameter now: The wall clock in seconds since 1970, which is read only if the field has a date.
  public init(of head: MessageHead, now: () -> Int) {
    let fields = head.fields.filter { $0.name == .retryAfter }
    guard let field = fields.first else {
      self = .none
      return
    }
    self =
      fields.count > 1
      ? .unreadable
      : head.bytes.withUnsafeReadableBytes { all in
        let value = UnsafeRawBufferPointer(rebasing: all[field.valueRange])
        // 2^32 seconds are more than any wait, and do not overflow in milliseconds.
        if let seconds = ASCII.decimal(value) { return .span(.seconds(Int64(min(seconds, 1 << 32)))) }
        guard let date = HTTPDate.parse(value, now: now) else { return .unreadable }
        return .span(.seconds(Int64(max(0, date - now()))))
      }
  }
}
