/// A granted claim: everything that its owner needs to renew, complete or release the record, and to make it anew if
/// the store has lost it.
///
/// It is a class, so that it is not copied into the frame of every step of its exchange.
public final class Claim: Sendable, Equatable {
  /// The members of a claim as one value, which is compared as a whole.
  private struct Grant: Sendable, Equatable {
    let id: RecordID
    let owner: OwnerToken
    let fingerprint: Fingerprint
    let attempt: Int
    let firstSeen: StoreInstant
    let followsUnknown: Bool
    let onlyRejectedSoFar: Bool
    let uncountedAttempts: Int
    let lease: Milliseconds
    let unknownRetention: Milliseconds
    let remember: Milliseconds
    let fence: Fence?
    let requestedAt: BootInstant
    let copiedUntil: BootInstant?
    let key: IdempotencyKey?
    let attribution: Attribution?
    let turn: Int
  }

  private let grant: Grant

  public init(
    id: RecordID, owner: OwnerToken, fingerprint: Fingerprint, attempt: Int, firstSeen: StoreInstant,
    followsUnknown: Bool, onlyRejectedSoFar: Bool, uncountedAttempts: Int = 0, lease: Milliseconds,
    unknownRetention: Milliseconds, remember: Milliseconds, fence: Fence? = nil, requestedAt: BootInstant,
    copiedUntil: BootInstant? = nil, key: IdempotencyKey? = nil, attribution: Attribution? = nil,
    turn: Int = 0
  ) {
    grant = Grant(
      id: id, owner: owner, fingerprint: fingerprint, attempt: attempt, firstSeen: firstSeen,
      followsUnknown: followsUnknown, onlyRejectedSoFar: onlyRejectedSoFar,
      uncountedAttempts: uncountedAttempts, lease: lease, unknownRetention: unknownRetention,
      remember: remember, fence: fence, requestedAt: requestedAt, copiedUntil: copiedUntil, key: key,
      attribution: attribution, turn: turn)
  }

  public static func == (left: Claim, right: Claim) -> Bool { left.grant == right.grant }

  public var id: RecordID { grant.id }
  public var owner: OwnerToken { grant.owner }
  public var fingerprint: Fingerprint { grant.fingerprint }
  /// The difference between the first attempt numbers of two generations of a store, the later of which began when the
  /// store had lost its records. No record has as many attempts.
  public static let attemptsPerGeneration = 1_000_000_000

  /// The number of the attempt: one more for each later owner. The first owner's is 1, and higher where the store has
  /// lost its records before, so that it fences lost owners off.
  public var attempt: Int { grant.attempt }
  /// The number of attempts of the record that the store knows of, this one included: 1 for the first owner.
  public var ordinal: Int { (attempt - 1) % Self.attemptsPerGeneration + 1 }
  /// The number of earlier attempts that do not count towards `max_attempts` (`Release.uncounted`): they were certainly
  /// not sent, or rejected.
  public var uncountedAttempts: Int { grant.uncountedAttempts }
  /// The number of attempts that count towards `max_attempts`, this one included.
  public var sendings: Int { max(1, ordinal - uncountedAttempts) }
  /// The time at which the first delivery arrived, by the store's clock.
  public var firstSeen: StoreInstant { grant.firstSeen }
  /// Whether an earlier attempt ended unknown. A refusal may then come from the backend's own unique column.
  public var followsUnknown: Bool { grant.followsUnknown }
  /// Whether every attempt so far met only 401, 403, 429 or a persisted query that the server lacks, which is true for
  /// the first attempt. Such a record is not kept.
  public var onlyRejectedSoFar: Bool { grant.onlyRejectedSoFar }
  public var lease: Milliseconds { grant.lease }
  /// Documented at `ClaimRequest`, like `remember`.
  public var unknownRetention: Milliseconds { grant.unknownRetention }
  public var remember: Milliseconds { grant.remember }
  /// The fence of a record that was forgotten before this claim. Every write of the owner preserves it.
  public var fence: Fence? { grant.fence }
  /// The time at which this grant was *requested*, by the owner's boot-time clock. On the owner's side, the lease
  /// counts from here.
  public var requestedAt: BootInstant { grant.requestedAt }
  /// The time until which the store may still run another copy of this claim, by the owner's boot-time clock; `nil` if
  /// there is none.
  ///
  /// The claim must not be released before: the copy would take the record again, and nobody would end it
  /// (Tests/Model/claim.pml, EARLY_RELEASE).
  public var copiedUntil: BootInstant? { grant.copiedUntil }
  /// Documented at `ClaimRequest`.
  public var key: IdempotencyKey? { grant.key }
  /// Documented at `ClaimRequest`. Every write of the owner preserves it.
  public var attribution: Attribution? { grant.attribution }
  /// The number by which large responses of one caller take turns with those of others. No store keeps it.
  public var turn: Int { grant.turn }
}

extension ClaimRequest {
  /// The condition for taking over a record of unknown outcome.
  public enum TakeOver: Sendable, Equatable {
    /// The record is never taken over: `on_unknown: hold`.
    case never
    /// The record may be taken over when this time has passed since the loss: `on_unknown: retry`.
    case afterSettle(Milliseconds)
    /// The record may be taken over when this time has passed since a loss that was seen earlier, and only after that
    /// loss: `on_unknown: reconcile`, with a verdict about it. The owner may have resumed since, sent its request and lost
    /// another response.
    case ofLoss(SeenLoss, afterSettle: Milliseconds)

    /// The time since a loss from which on a record may be taken over; `nil` for never.
    public var settle: Milliseconds? {
      switch self {
      case .never: nil
      case .afterSettle(let settle), .ofLoss(_, let settle): settle
      }
    }

    /// The minimum age of a loss whose record is taken over by a command that is sent now; `nil` for never.
    public func minAge(at now: BootInstant) -> Milliseconds? {
      guard case .ofLoss(let loss, let settle) = self else { return settle }
      return max(settle, loss.minAge(at: now))
    }
  }

  /// The loss of a response, as a look at its record has found it.
  public struct SeenLoss: Sendable, Equatable {
    /// The time since the loss, by the store's clock, at the moment of the look.
    public let age: Milliseconds
    /// The moment of the look, by this machine's clock.
    public let seenAt: BootInstant

    public init(age: Milliseconds, seenAt: BootInstant) {
      self.age = age
      self.seenAt = seenAt
    }

    /// The minimum age of the same loss at a later moment. It grows with the time, less the amount by which the clocks
    /// may drift apart. A younger loss is another one.
    public func minAge(at now: BootInstant) -> Milliseconds {
      let elapsed = now - seenAt
      return age + elapsed - Milliseconds(20 + elapsed.count / 100)
    }
  }
}
