/// What a newcomer asks the store for: to be the one owner of a record.
///
/// A class, so that it is not copied into the frame of every step that has it.
public final class ClaimRequest: Sendable {
  /// Whether a record of unknown outcome may be taken over.
  public enum TakeOver: Sendable, Equatable {
    /// Never: `on_unknown: hold`.
    case never
    /// Once this long has passed since the loss: `on_unknown: retry`.
    case afterSettle(Milliseconds)
  }

  public let id: RecordID
  public let owner: OwnerToken
  public let fingerprint: Fingerprint
  public let lease: Milliseconds
  public let takeOver: TakeOver
  /// How long an unknown record is kept before it ages to a tombstone.
  public let unknownRetention: Milliseconds
  /// How long after its end a record is remembered at all.
  public let remember: Milliseconds

  public init(
    id: RecordID, owner: OwnerToken, fingerprint: Fingerprint, lease: Milliseconds, takeOver: TakeOver,
    unknownRetention: Milliseconds, remember: Milliseconds
  ) {
    self.id = id
    self.owner = owner
    self.fingerprint = fingerprint
    self.lease = lease
    self.takeOver = takeOver
    self.unknownRetention = unknownRetention
    self.remember = remember
  }
  /// The same for another owner, by another fingerprint or with another lease.
  public func changed(
    owner: OwnerToken? = nil, fingerprint: Fingerprint? = nil, lease: Milliseconds? = nil
  ) -> ClaimRequest {
    ClaimRequest(
      id: id, owner: owner ?? self.owner, fingerprint: fingerprint ?? self.fingerprint,
      lease: lease ?? self.lease, takeOver: takeOver, unknownRetention: unknownRetention, remember: remember)
  }
}

/// A granted claim: all that its owner must hold to renew, complete or release it, and to make the record anew
/// where the store has lost it.
///
/// A class, so that it is not copied into the frame of every step of its exchange.
public final class Claim: Sendable {
  public let id: RecordID
  public let owner: OwnerToken
  public let fingerprint: Fingerprint
  /// 1 for the first owner, and one more with each new one.
  public let attempt: Int
  /// When the first delivery came, by the store's clock.
  public let firstSeen: StoreInstant
  /// Whether an earlier attempt ended unknown: a 409 or 412 may then be the backend's own unique column speaking.
  public let followsUnknown: Bool
  /// Whether every attempt so far met only 401, 403 or 429 (true for the first one): such a record is not kept.
  public let onlyRejectedSoFar: Bool
  public let lease: Milliseconds
  /// See `ClaimRequest`.
  public let unknownRetention: Milliseconds
  public let remember: Milliseconds
  /// Of a record that was forgotten before this claim; whatever its owner writes keeps it.
  public let fence: Fence?
  /// When this grant was *asked for*, by the owner's boot-time clock. The lease counts from here on the owner's side.
  public let askedAt: BootInstant
  /// Until then the store may yet run another copy of this claim, by the owner's boot-time clock. The claim must not
  /// be given back before: the copy would take it again, with nobody to end it (Tests/Model/claim.pml, EARLY_RELEASE).
  public let copiedUntil: BootInstant

  public init(
    id: RecordID, owner: OwnerToken, fingerprint: Fingerprint, attempt: Int, firstSeen: StoreInstant,
    followsUnknown: Bool, onlyRejectedSoFar: Bool, lease: Milliseconds, unknownRetention: Milliseconds,
    remember: Milliseconds, fence: Fence? = nil, askedAt: BootInstant,
    copiedUntil: BootInstant = BootInstant(nanoseconds: 0)
  ) {
    self.id = id
    self.owner = owner
    self.fingerprint = fingerprint
    self.attempt = attempt
    self.firstSeen = firstSeen
    self.followsUnknown = followsUnknown
    self.onlyRejectedSoFar = onlyRejectedSoFar
    self.lease = lease
    self.unknownRetention = unknownRetention
    self.remember = remember
    self.fence = fence
    self.askedAt = askedAt
    self.copiedUntil = copiedUntil
  }
}

extension Claim: Equatable {
  public static func == (left: Claim, right: Claim) -> Bool {
    left.id == right.id && left.owner == right.owner && left.fingerprint == right.fingerprint
      && left.attempt == right.attempt && left.firstSeen == right.firstSeen
      && left.followsUnknown == right.followsUnknown && left.onlyRejectedSoFar == right.onlyRejectedSoFar
      && left.lease == right.lease && left.unknownRetention == right.unknownRetention
      && left.remember == right.remember && left.fence == right.fence && left.askedAt == right.askedAt
      && left.copiedUntil == right.copiedUntil
  }
}

/// What the store says to a newcomer.
public enum ClaimOutcome: Sendable, Equatable {
  case granted(Claim)
  /// The record is somebody else's or has ended. Never `absent` or `released`: those are claimed.
  case taken(Standing)
  /// The record was made with another payload, in whatever state it is.
  case mismatch
  /// The record's fingerprint was made by another recipe: make the newcomer's by this one and ask again.
  case otherRecipe(Recipe)
}

/// What the store says to an owner.
public enum OwnerOutcome: Sendable, Equatable {
  /// Done; or had been done before under the same token.
  case done
  /// Somebody else took the record over, resolved or forgot it: this is where it stands now.
  case lost(Standing)
}

/// What the store says to an owner that completes.
public struct CompletionReply: Sendable, Equatable {
  public var outcome: OwnerOutcome
  /// The record that is stored now under the owner's token, with the store's times; `nil` where that is not told.
  public var record: CompletedRecord?

  public init(outcome: OwnerOutcome, record: CompletedRecord?) {
    self.outcome = outcome
    self.record = record
  }
}

/// A final outcome, and how long it counts.
public struct Completion: Sendable, Equatable {
  public var outcome: Outcome
  /// From completion on, how long the answer is replayed.
  public var retention: Milliseconds
  /// From completion on, how long the record is remembered; at least `retention`.
  public var remember: Milliseconds

  public init(outcome: Outcome, retention: Milliseconds, remember: Milliseconds) {
    self.outcome = outcome
    self.retention = retention
    self.remember = remember
  }
}

/// How an owner gives a record back.
public enum Release: Sendable, Equatable {
  /// Nothing was executed, or the outcome was of a retryable class. The record stays for `remember`, free to claim.
  case remembered
  /// All that this record ever met was 401, 403 or 429, or it was claimed and never used: it is deleted.
  case deleted
}

/// What an operator says about a record.
public enum Resolution: Sendable, Equatable {
  /// The backend did run it, and this is the outcome.
  case applied(Completion)
  /// The backend did not run it: the next delivery may.
  case notApplied
}

/// Keeps records: one atomic step a call, judged by the store's own clock.
///
/// An implementation is confined to one event loop, or safe from any. Every method may be repeated with the same
/// owner token when its reply was lost.
public protocol RecordStore: Sendable {
  associatedtype Watch: RecordWatch

  /// Asks to own a record. A copy of the command that the store runs after this call has thrown claims nothing
  /// (the claim carries a deadline in the store's own time). `fateUnknown`: the store may have granted it before;
  /// the caller then gives it back with `release`. A granted one is given back no sooner than `copiedUntil`.
  func claim(_ request: ClaimRequest) async throws(StoreError) -> ClaimOutcome
  /// `claim` without a task that waits. What it comes to is told once, on the caller's event loop and after this has
  /// returned. False where the store knows no such way, or not at the moment: then nothing was asked.
  func claim(
    _ request: ClaimRequest, tell: @escaping @Sendable (Result<ClaimOutcome, StoreError>) -> Void
  ) -> Bool
  /// What this process knows for certain without asking the store: a completed outcome that it keeps. `nil` where it
  /// keeps none.
  func cached(_ id: RecordID, _ fingerprint: Fingerprint) -> ClaimOutcome?
  /// Extends the lease from now on. A record that the store has lost is made anew, in flight; a lapsed lease that
  /// nobody took over is renewed; a record marked unknown stays so.
  func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome
  /// Ends the record with its final outcome; also after its lease lapsed, after `markUnknown`, and where the store
  /// has lost it.
  func complete(_ claim: Claim, with completion: Completion) async throws(StoreError) -> OwnerOutcome
  /// As `complete`, and tells the record as it is stored now, so that a cache need not ask for it.
  func completeAndTell(_ claim: Claim, with completion: Completion) async throws(StoreError)
    -> CompletionReply
  /// Gives the record back. One that is not there stays so.
  func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome
  /// Says that the backend may have run the request and the answer is lost. One that is not there is made anew.
  func markUnknown(_ claim: Claim) async throws(StoreError) -> OwnerOutcome
  /// Looks, and changes nothing.
  func find(_ id: RecordID) async throws(StoreError) -> Standing
  /// The next part of the list of all records that are in flight or of unknown outcome: for an operator, in steps
  /// that hold nobody up for long.
  /// - Parameter cursor: `next` of the part before; `nil` begins.
  func list(after cursor: String?) async throws(StoreError) -> OpenRecords
  /// Removes a record whatever its state, also one that cannot be read, leaving for `fence` a mark that keeps its owner
  /// from making it anew: whatever later owners do to the record, that mark stays. False where there was none.
  func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool
  /// Ends an unknown record by an operator's word. `lost` where it is not unknown.
  /// - Parameter amending: also corrects an operator's word that ended it before, where nobody has claimed it since.
  func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool
  ) async throws(StoreError) -> OwnerOutcome
  /// Subscribes to the ends of a record. From its return on no end is missed.
  func watch(_ id: RecordID) async throws(StoreError) -> Watch
}

extension RecordStore {
  public func cached(_ id: RecordID, _ fingerprint: Fingerprint) -> ClaimOutcome? { nil }

  public func claim(
    _ request: ClaimRequest, tell: @escaping @Sendable (Result<ClaimOutcome, StoreError>) -> Void
  ) -> Bool { false }
}

extension RecordStore {
  public func resolve(_ id: RecordID, as resolution: Resolution) async throws(StoreError) -> OwnerOutcome {
    try await resolve(id, as: resolution, amending: false)
  }

  /// For a store whose reply does not tell the record.
  public func completeAndTell(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    CompletionReply(outcome: try await complete(claim, with: completion), record: nil)
  }
}

/// A subscription to one record's ends, used by one task on one event loop.
public protocol RecordWatch: Sendable {
  /// Returns when the record may have changed (also after a resubscription, when a push may have been missed), or
  /// when the span is over. Whoever gets an answer looks again: a wake-up is never the outcome itself.
  func changed(within span: Milliseconds) async
  /// Ends the subscription. Must be called once.
  func cancel()
}
