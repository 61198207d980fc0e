/// The arguments of a claim: a delivery's attempt to become the one owner of a record.
///
/// It is a class, so that it is not copied into the frame of every step that uses it.
public final class ClaimRequest: Sendable {
  public let id: RecordID
  public let owner: OwnerToken
  public let fingerprint: Fingerprint
  public let lease: Milliseconds
  /// The condition for taking over a record of unknown outcome.
  public let takeOver: TakeOver
  /// The time for which an unknown record is kept before it becomes a tombstone.
  public let unknownRetention: Milliseconds
  /// The time for which a record is remembered after its end.
  public let remember: Milliseconds
  /// The release of a claim that was granted and never used.
  public let unusedRelease: Release
  /// The client's key, for a store that seals responses with it; `nil` where none does.
  public let key: IdempotencyKey?
  /// The origin of the attempt, for operators; `nil` if none is kept.
  public let attribution: Attribution?
  /// The delivery that gets a recorded response; `nil` if there is none.
  public let reader: (any ResponseReader)?
  /// The reader's number; 0 if there is none.
  public let turn: Int

  public init(
    id: RecordID, owner: OwnerToken, fingerprint: Fingerprint, lease: Milliseconds, takeOver: TakeOver,
    unknownRetention: Milliseconds, remember: Milliseconds, unusedRelease: Release = .remembered,
    key: IdempotencyKey? = nil, attribution: Attribution? = nil, reader: (any ResponseReader)? = nil
  ) {
    self.reader = reader
    turn = reader?.turn ?? 0
    self.id = id
    self.owner = owner
    self.fingerprint = fingerprint
    self.lease = lease
    self.takeOver = takeOver
    self.unknownRetention = unknownRetention
    self.remember = remember
    self.unusedRelease = unusedRelease
    self.key = key
    self.attribution = attribution
  }

  /// A copy with another owner, fingerprint or condition.
  public func changed(
    owner: OwnerToken? = nil, fingerprint: Fingerprint? = nil, takeOver: TakeOver? = nil
  ) -> ClaimRequest {
    ClaimRequest(
      id: id, owner: owner ?? self.owner, fingerprint: fingerprint ?? self.fingerprint, lease: lease,
      takeOver: takeOver ?? self.takeOver, unknownRetention: unknownRetention, remember: remember,
      unusedRelease: unusedRelease, key: key, attribution: attribution, reader: reader)
  }
}

/// The store's reply to a claim.
public enum ClaimOutcome: Sendable, Equatable {
  case granted(Claim)
  /// The record has another owner or has ended. The standing is never `absent` or `released`, since such records are
  /// granted.
  case taken(Standing)
  /// The record, whatever its state, was made with another payload.
  case mismatch
  /// The record's fingerprint was made with another recipe. Make the fingerprint with this recipe and claim again.
  case otherRecipe(Recipe)
}

/// The store's reply to the request for a claim.
public typealias ClaimReply = Result<ClaimOutcome, StoreError>

/// The store's reply to an owner.
public enum OwnerOutcome: Sendable, Equatable {
  /// The command took effect, now or earlier under the same token.
  case done
  /// The record was taken over, resolved or forgotten by somebody else. The value is its present state.
  case lost(Standing)
  /// The record was forgotten, and one with another payload, or with a fingerprint by another recipe, is in its place.
  /// That record's outcome is no response to the owner's request.
  case replaced
}

/// The store's reply to an owner that completes its record.
public struct CompletionReply: Sendable, Equatable {
  public var outcome: OwnerOutcome
  /// The record as stored under the owner's token, with the store's times; `nil` if the reply does not contain it.
  public var record: CompletedRecord?

  public init(outcome: OwnerOutcome, record: CompletedRecord?) {
    self.outcome = outcome
    self.record = record
  }
}

/// A final outcome, and the times for which it counts.
public struct Completion: Sendable, Equatable {
  public var outcome: Outcome
  /// The time for which the response is replayed, from completion on.
  public var retention: Milliseconds
  /// The time for which the record is remembered, from completion on; at least `retention`.
  public var remember: Milliseconds

  public init(outcome: Outcome, retention: Milliseconds, remember: Milliseconds) {
    self.outcome = outcome
    self.retention = retention
    self.remember = remember
  }

  /// The time for which the record exists, from completion on.
  public var lifetime: Milliseconds { max(retention, remember) }
}

/// The way in which an owner releases a record.
public enum Release: Sendable, Equatable {
  /// The record stays for `remember`, free to claim. Either nothing was executed, or the outcome was of the retry
  /// class.
  case remembered
  /// As `remembered`, and the attempt does not count towards `max_attempts`.
  case uncounted
  /// The record is deleted. Either all its attempts met only rejections, or it was claimed and never used.
  case deleted
}

/// An operator's decision about a record.
public enum Resolution: Sendable, Equatable {
  /// The backend executed the request, with this outcome.
  case applied(Completion)
  /// The backend did not execute the request, so the next delivery may run.
  case notApplied
}

/// A store of records. Each call is one atomic step, and times are judged by the store's own clock.
///
/// An implementation is confined to one event loop, or safe to use from any. If the reply is lost, every method may be
/// repeated with the same owner token.
public protocol RecordStore: Sendable {
  associatedtype Watch: RecordWatch

  /// The index of the open records; `nil` if the store has none, and reads them all in a short time.
  var openIndex: (any OpenRecordIndex)? { get }
  /// The outcome of a claim that is certain without a request to the store, since this process's cache holds the
  /// completed record; `nil` if there is none.
  ///
  /// It needs neither an owner's token nor a receiver, so that a replay from the cache does not pay for them.
  func knownOutcome(of id: RecordID, _ fingerprint: Fingerprint) -> ClaimOutcome?
  /// Claims a record for an owner by a request to the store, without a task that waits.
  ///
  /// Once the caller has given the claim back, copies of the command that the store runs later claim nothing. After
  /// `fateUnknown`, the store may have granted the claim, and the caller gives it back with `release`. A granted claim
  /// is given back no sooner than `copiedUntil`.
  ///
  /// - Parameter onReply: The receiver of the store's reply. It is called once, after this method has returned, and on
  ///   the caller's event loop if the caller runs on one.
  func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void)
  /// Extends the lease, which begins again now. A record that the store has lost is made anew, in flight. A lapsed
  /// lease that nobody took over is renewed. A record marked unknown stays unknown.
  func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome
  /// Ends the record with its final outcome, also after its lease has lapsed, after `markUnknown`, and if the store has
  /// lost the record.
  func complete(_ claim: Claim, with completion: Completion) async throws(StoreError) -> CompletionReply
  /// Releases the record. A missing record stays missing.
  func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome
  /// Marks the record unknown: the backend may have run the request, and the response is lost. A missing record is made
  /// anew.
  ///
  /// - Parameter cause: The way in which it was lost, for operators.
  func markUnknown(_ claim: Claim, because cause: LossCause?) async throws(StoreError) -> OwnerOutcome
  /// The present state of the record. Nothing is changed.
  func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing
  /// The next part of an operator's list of all records that are in flight or of unknown outcome, in steps that delay
  /// other commands only briefly.
  ///
  /// - Parameter cursor: The `next` of the previous part; `nil` for the first part.
  func list(after cursor: String?) async throws(StoreError) -> OpenRecords
  /// The record as an operator sees it; `nil` if there is none. Nothing is changed.
  func inspect(_ id: RecordID) async throws(StoreError) -> RecordView?
  /// The next part of a search for records by their origin, in steps like those of `list`, and with its cursors.
  ///
  /// It finds records in any state that exist throughout the search, but none without an attribution.
  func search(_ filter: RecordFilter, after cursor: String?) async throws(StoreError) -> FoundRecords
  /// Whether a text has the form of a cursor of `list` and `search`. The walk may still be unable to continue there.
  func isCursor(_ text: String) -> Bool
  /// Removes a record in any state, even one that cannot be read.
  ///
  /// For the span `fence`, a mark keeps the record's owner from making it anew, whatever later owners do to the record.
  /// - Returns: False if there was no record.
  func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool
  /// Ends an unknown record by an operator's decision. The outcome is `lost` if the record is not unknown, or if its
  /// last attempt is another one than the operator has decided about.
  ///
  /// - Parameters:
  ///   - amending: Whether to correct an earlier decision of an operator, if nobody has claimed the record since.
  ///   - attempt: The attempt that the decision is about; `nil` for the last one, whichever it is.
  func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome
  /// Subscribes to the ends of a record. After the method has returned, no end is missed.
  func watch(_ id: RecordID) async throws(StoreError) -> Watch
  /// Whether the store answers nobody. Called after a command about this record has failed.
  ///
  /// A store that has too much to do answers, if late, and is not down: neither does a connection say anything that was
  /// given up because of what waits on it.
  func isDown(for id: RecordID) async -> Bool
}

extension RecordStore {
  /// The implementation for a store without an index.
  public var openIndex: (any OpenRecordIndex)? { nil }

  /// The implementation for a store without a cache.
  public func knownOutcome(of id: RecordID, _ fingerprint: Fingerprint) -> ClaimOutcome? { nil }

  /// Claims a record by `startClaim` in a task that waits for the reply.
  public func claim(_ request: ClaimRequest) async throws(StoreError) -> ClaimOutcome {
    let reply = await withUnsafeContinuation { continuation in
      startClaim(request) { continuation.resume(returning: $0) }
    }
    return try reply.get()
  }

  public func find(_ id: RecordID, opening key: IdempotencyKey? = nil) async throws(StoreError) -> Standing {
    try await find(id, reading: .response(opening: key, for: nil))
  }

  public func markUnknown(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    try await markUnknown(claim, because: nil)
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool = false
  ) async throws(StoreError) -> OwnerOutcome {
    try await resolve(id, as: resolution, amending: amending, attempt: nil)
  }
}

/// A subscription to one record's ends, used by one task on one event loop.
public protocol RecordWatch: Sendable {
  /// Returns when the record may have changed (also after a resubscription, when a push may have been missed), or when
  /// the span is over. The caller must then look at the record again: a return from this method implies no
  /// outcome.
  func changed(within span: Milliseconds) async
  /// Ends the present wait, or the next one if there is none.
  func wake()
  /// Ends the subscription. Must be called once.
  func cancel()
}

/// The part of a record that is read.
public enum RecordReading: Sendable {
  /// The state alone: of a response its status. However large a response is, this costs no more than any other command.
  case state
  /// The state and the recorded response.
  ///
  /// - opening: The client's key, which opens a response that was sealed with it; without it, such an outcome stays
  ///   encoded.
  /// - for: The delivery that gets the response; `nil` if there is none.
  case response(opening: IdempotencyKey?, for: (any ResponseReader)?)
}

/// The delivery for which a recorded response is read. Confined to the event loop from which the store is called.
public protocol ResponseReader: AnyObject, Sendable {
  /// The number by which responses of one caller take turns with those of others.
  var turn: Int { get }
  /// Whether the client still waits.
  var isConnected: Bool { get }
}

/// The failure of a command to the store. Each case states whether the command may have been run.
public enum StoreError: Error, Equatable, Sendable {
  /// The store answers, and had too much to do for this command, which was certainly not run: a recorded response was not
  /// read or not written, or a command has not had its turn. The error says nothing of other commands, and is never a
  /// reason to execute the request.
  case busy(String)
  /// The command was certainly not run: it was not sent, or the store refused it. It is safe to repeat.
  case unavailable(String)
  /// The store is reachable but must not be used: it may lose writes, or identifies requests in another way. The
  /// command was not run, and this error is never a reason to execute the request.
  case refused(String)
  /// The command may have been run, and its reply is lost. The record's owner token decides.
  case fateUnknown(String)
  /// The record exists, and this build cannot read it. This error is never a reason to execute the request.
  case unreadable(String)

  /// The cause as text, for a log or an operator.
  public var text: String {
    switch self {
    case .busy(let text), .unavailable(let text), .refused(let text), .fateUnknown(let text),
      .unreadable(let text):
      text
    }
  }
}

extension StoreError: CustomStringConvertible {
  public var description: String { text }
}
