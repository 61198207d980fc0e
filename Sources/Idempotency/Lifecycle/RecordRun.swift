import Wire

/// The owner's part of one record, from the grant of its claim until the store has its end. Performs no I/O.
///
/// The shell (`OwnedRecord` in `Proxy`) passes in replies and times, and carries out the actions. `State` is the way of
/// the record to its end, and `Renewal` that of its lease beside it. Together they are the labels `owning`, `sent`,
/// `unanswered`, `responded` and `givingBack` of Tests/Model/claim.pml.
public struct RecordRun: ~Copyable {
  enum State {
    /// The request may be sent once, or its response is awaited. Followed by `pausing`, `ending` or `cut`.
    case running
    /// The attempt is over, and the claim is kept for the pause before the next one. A process that ends meanwhile
    /// releases the record so. Followed by `ending`.
    case pausing(Release)
    /// The end is decided, and on its way to the store. Followed by `listening`, after a mark alone, by `repeating`,
    /// `cut` or `over`.
    case ending(End)
    /// The record is marked unknown after a time-out, and a late response still counts. Followed by `ending`, `cut` or
    /// `over`.
    case listening
    /// The store gave no reply, and the end is sent again behind the run. To this process the record has the end
    /// `known` meanwhile. Followed by `over`.
    case repeating(End, known: KnownRecord.OwnEnd)
    /// The process ends, and gives the record this end. What the run learns yet counts more. Followed by `pausing`,
    /// `ending` or `over`.
    case cut(End)
    /// The store has the end, or never gets it, and then the lease lapses.
    case over
  }

  private enum Renewal {
    /// The next one begins when the timer ends.
    case scheduled
    /// One waits for the store's reply. Another one follows it at once if that was requested meanwhile.
    case underWay(isDueAgain: Bool)
    /// The lease lapses: the record is unknown, is released, has ended, or has another owner.
    case stopped
  }

  public let claim: Claim
  /// The release that keeps the record of an attempt that does not count.
  private let uncountedRelease: Release
  private var state: State = .running
  private var renewal = Renewal.scheduled
  /// Whether a renewal was ever requested.
  private var hasRequestedRenewal = false
  /// The time at which the last acknowledged grant was requested.
  private var grantedAt: BootInstant
  private var hasLapsed = false
  /// The reason why the latest renewal failed; `nil` if the latest one was acknowledged.
  private var failure: String?
  /// Whether the store gave no reply to the first command that was to end the record.
  public private(set) var isUnanswered = false
  /// Whether the outcome is recorded without the body of its response, if at all.
  public private(set) var isUnkept = false
  /// Whether the loss of the attempt's outcome was logged.
  public private(set) var isLossNoted = false

  public init(_ claim: Claim, uncountedRelease: Release = .remembered) {
    invariant(uncountedRelease != .deleted, "a release that keeps the record deletes it")
    self.claim = claim
    self.uncountedRelease = uncountedRelease
    grantedAt = claim.requestedAt
  }
}

extension RecordRun {
  /// The end that an owner gives its record.
  public enum End: Sendable, Equatable {
    case completed(Completion)
    case released(Release)
    case unknown(LossCause?)

    /// The end as this process knows it while the store is away.
    public var known: KnownRecord.OwnEnd {
      switch self {
      case .completed(let completion): .completed(completion.lifetime)
      case .released(.deleted): .deleted
      case .released(.remembered), .released(.uncounted): .released
      case .unknown: .unknown
      }
    }

    /// Whether the end may be sent in place of this one, to which the store gave no reply: the same release, or an
    /// outcome, whose response may be left out. Marks are sent once.
    fileprivate func mayReplace(_ sent: End) -> Bool {
      switch (self, sent) {
      case (.completed, .completed): true
      case (.released(let release), .released(let other)): release == other
      default: false
      }
    }
  }

  /// A lease that ran out while its owner lived, so that another delivery may find the record unknown.
  public struct Lapse: Sendable, Equatable {
    /// The time since the last acknowledged grant was requested.
    public let span: Milliseconds
    /// The reason why the renewals failed; `nil` if each one was acknowledged, and the next one begins too late.
    public let failure: String?

    public init(span: Milliseconds, failure: String?) {
      self.span = span
      self.failure = failure
    }
  }

  /// The shell's next step about the lease and the other deliveries.
  public enum Action: Sendable, Equatable {
    case none
    /// Begin a renewal when this time is over; at once if it is `nil`. The timer is stopped.
    case renew(after: Milliseconds?)
    /// Send the renewal.
    case request(Lapse?)
    /// Extend the permit to send, which a renewal was acknowledged for, and begin the next one as with `renew`.
    case extend(next: Milliseconds?)
    /// Revoke the permit to send, since the record has another owner or none. The lease is renewed no more.
    case revoke(Lapse?)
    /// Stop the timer: the lease is renewed no more.
    case stop(Lapse?)
    /// Have other claims of the record wait for its outcome, since the store may grant one before it has that.
    case holdClaims
    /// Forget the record, with its timer and the claims that wait for it.
    case leave
  }

  /// The end that a process which ends now sends once more; `nil` if there is none yet.
  public var end: End? {
    switch state {
    case .ending(let end), .repeating(let end, _), .cut(let end): end
    case .pausing(let release): .released(release)
    case .running, .listening, .over: nil
    }
  }

  /// The end of the record as this process knows it; `nil` while it is running.
  public var knownEnd: KnownRecord.OwnEnd? {
    switch state {
    case .ending(.unknown), .listening: .unknown
    case .repeating(_, let known): known
    case .running, .pausing, .ending, .cut, .over: nil
    }
  }

  /// Whether the run may end: the record has its end, or gets it without the run.
  public var hasEnd: Bool {
    switch state {
    case .over, .repeating: true
    case .running, .pausing, .ending, .listening, .cut: false
    }
  }

  /// Notes the loss of the attempt's outcome; false if it was noted before.
  public mutating func noteLoss() -> Bool {
    defer { isLossNoted = true }
    return !isLossNoted
  }

  public mutating func noteUnkept() { isUnkept = true }
}

// The lease.
extension RecordRun {
  /// The time from the grant of a lease to its first renewal, where `count` leases are granted at once: between a sixth
  /// and a third of the lease, evenly. Their later renewals stay as far apart, since each follows the one before by a
  /// third.
  public static func firstRenewal(of lease: Milliseconds, at place: Int, among count: Int) -> Milliseconds {
    invariant(place < count, "more leases are granted than were claimed at once")
    return lease / 3 - Milliseconds(lease.count / 6 * Int64(place) / Int64(count))
  }

  /// A renewal is due: the timer has ended, or the store may have lost the lease, or judges it by another time.
  ///
  /// A renewal that is under way may have met the store as it was before, or fails with its connection.
  public mutating func renewalIsDue() -> Action {
    switch renewal {
    case .scheduled:
      renewal = .underWay(isDueAgain: false)
      return .renew(after: nil)
    case .underWay:
      renewal = .underWay(isDueAgain: true)
      return .none
    case .stopped: return .none
    }
  }

  /// A renewal begins. The run may have ended since it was due: a renewal would make its deleted record anew.
  public mutating func renewalBegins(now: BootInstant) -> Action {
    guard case .underWay = renewal else { return .none }
    invariant(needsLease, "a lease is renewed whose record has been given up")
    hasRequestedRenewal = true
    // A run that has ended needs its record's end, not its lease.
    if case .running = state { return .request(lapse(at: now)) }
    return .request(nil)
  }

  /// The store has replied to a renewal that was requested at `requestedAt`.
  public mutating func renewed(
    _ outcome: OwnerOutcome, requestedAt: BootInstant, now: @autoclosure () -> BootInstant
  ) -> Action {
    guard case .underWay = renewal else { return .none }
    switch outcome {
    case .done:
      failure = nil
      grantedAt = requestedAt
      return .extend(next: nextRenewal(in: claim.lease / 3))
    case .lost, .replaced:
      // Nothing is sent any more. The client's response depends on the record's state when the owner ends.
      renewal = .stopped
      if case .running = state { return .revoke(lapse(at: now())) }
      return .revoke(nil)
    }
  }

  /// The store gave no reply to a renewal.
  public mutating func renewalFailed(_ reason: String) -> Action {
    failure = reason
    guard case .underWay = renewal else { return .none }
    return .renew(after: nextRenewal(in: claim.lease / 10))
  }

  /// The time until the renewal after the one that has ended; `nil` if it is due at once.
  private mutating func nextRenewal(in span: Milliseconds) -> Milliseconds? {
    guard case .underWay(isDueAgain: true) = renewal else {
      renewal = .scheduled
      return span
    }
    renewal = .underWay(isDueAgain: false)
    return nil
  }

  /// Lets the lease lapse from now on.
  private mutating func stopRenewing(now: BootInstant) -> Action {
    if case .stopped = renewal { return .none }
    renewal = .stopped
    return .stop(lapse(at: now))
  }

  /// Whether the record may still be renewed: the run has no end, or an outcome that the store does not have yet. Behind a
  /// release or a mark, a renewal would make a deleted record anew, or hold one that is unknown.
  private var needsLease: Bool {
    switch state {
    case .running, .pausing, .ending(.completed), .repeating(.completed, _): true
    case .ending, .listening, .repeating, .cut, .over: false
    }
  }

  private var isRenewing: Bool {
    if case .stopped = renewal { false } else { true }
  }

  /// The lapse of the lease, once.
  private mutating func lapse(at now: BootInstant) -> Lapse? {
    let span = now - grantedAt
    guard !hasLapsed, span >= claim.lease else { return nil }
    hasLapsed = true
    return Lapse(span: span, failure: failure)
  }

  /// Whether another delivery may get the record before the owner's next command is stored: the lease is renewed no
  /// more, or its renewal is overdue. The rest of it is otherwise longer than a call of the store may take.
  private func mayBeOvertaken(at now: BootInstant) -> Bool {
    if case .stopped = renewal { return true }
    return now - grantedAt >= claim.lease / 3
  }
}

// The end.
extension RecordRun {
  /// The attempt has ended with a release before which there is a pause. The claim is kept meanwhile, and its lease
  /// renewed.
  public mutating func pauses(before release: Release) {
    switch state {
    case .running, .cut: state = .pausing(keeping(release))
    case .pausing, .ending, .listening, .repeating, .over: invariantBroken("a pause of a run that has an end")
    }
  }

  /// The release as it may be given now: one that keeps the record where a renewal was ever requested, since a delayed
  /// copy of that would make a deleted record anew (Tests/Model/claim.pml, LATE_DELETE).
  public func permitted(_ release: Release) -> Release { hasRequestedRenewal ? keeping(release) : release }

  /// The release in place of another that keeps the record in any case.
  private func keeping(_ release: Release) -> Release { release == .deleted ? uncountedRelease : release }

  /// Decides the record's end. From here on a process that ends sends it: a mark behind a release would make the
  /// deleted record anew, and one in place of an outcome would lose it.
  ///
  /// The lease is renewed until an outcome is stored, and no more before a release or a mark.
  ///
  /// - Returns: The end as it is sent, no sooner than the action is carried out.
  public mutating func decide(_ decided: End, now: BootInstant) -> (end: End, action: Action) {
    switch state {
    case .running, .pausing, .listening, .cut: break
    case .ending, .repeating, .over: invariantBroken("a record that has its end gets another")
    }
    let (end, action): (End, Action)
    switch decided {
    case .completed: (end, action) = (decided, mayBeOvertaken(at: now) ? .holdClaims : .none)
    case .released(let release):
      // The mark of a process that ends would make a deleted record anew as well.
      let isMarked = if case .cut(.unknown) = state { true } else { false }
      let kept = isMarked ? keeping(release) : permitted(release)
      invariant(
        kept != .deleted || !hasRequestedRenewal && !isMarked,
        "a record is deleted that a late command makes anew")
      (end, action) = (.released(kept), stopRenewing(now: now))
    case .unknown: (end, action) = (decided, stopRenewing(now: now))
    }
    state = .ending(end)
    invariant(!isRenewing || needsLease, "a lease is kept behind the end of its record")
    return (end, action)
  }

  /// The store gave no reply to the end.
  public mutating func unanswered() {
    invariant(end != nil, "the store gives no reply to an end that was not sent")
    isUnanswered = true
  }

  /// The end, which an outcome without its body may have replaced, is sent again until the store replies.
  ///
  /// - Parameter known: The end as this process knows it until then.
  public mutating func repeats(_ end: End, known: KnownRecord.OwnEnd) -> Action {
    guard case .ending(let sent) = state else { invariantBroken("an end is repeated that was not sent") }
    invariant(end.mayReplace(sent), "another end is repeated than was sent")
    state = .repeating(end, known: known)
    if case .completed = end { return .holdClaims }
    return .none
  }

  /// The record is marked unknown, or its lease lapses, and a late response is awaited.
  public mutating func listens() {
    switch state {
    case .ending(.unknown):
      invariant(!isRenewing, "a lease is renewed behind a mark")
      state = .listening
    case .cut: break
    case .running, .pausing, .ending, .listening, .repeating, .over:
      invariantBroken("a run listens without a mark")
    }
  }

  /// The store has replied to the end, or is not to get it: the record is no longer this run's.
  public mutating func leaves() -> Action {
    switch state {
    case .ending, .listening, .repeating, .cut: state = .over
    case .running, .pausing, .over: invariantBroken("a record is left without an end, or twice")
    }
    renewal = .stopped
    return .leave
  }

  /// The response that the client of a run gets when its process ends.
  public enum CutAction: Sendable, Equatable {
    /// The run's own, since its end was decided before.
    case awaitRun
    /// A refusal, since its outcome is lost.
    case refuseAsLost
    /// A refusal, since its request was never sent.
    case refuseAsUnsent
  }

  /// The process ends, and no byte of the request leaves from now on. `end` is the record's end after this.
  public mutating func cut(isSent: Bool, now: BootInstant) -> (CutAction, Action) {
    switch state {
    case .running where !isSent:
      state = .cut(.released(permitted(claim.unusedRelease(keeping: uncountedRelease))))
      return (.refuseAsUnsent, stopRenewing(now: now))
    // The backend has responded, and its client gets that.
    case .ending(.unknown(.status)):
      renewal = .stopped
      return (.awaitRun, .stop(nil))
    case .running, .ending(.unknown), .listening:
      state = .cut(.unknown(.shutdown))
      return (.refuseAsLost, stopRenewing(now: now))
    case .pausing:
      return (.awaitRun, stopRenewing(now: now))
    case .ending, .repeating, .cut:
      renewal = .stopped
      return (.awaitRun, .stop(nil))
    case .over: invariantBroken("a record that was left ends with the process")
    }
  }
}
