import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

/// The last command of a record's owner.
enum LastCommand {
  case complete(Completion)
  case release(Release)

  /// The end that it gives the record.
  var end: KnownRecord.OwnEnd {
    switch self {
    case .complete(let completion): .completed(completion.lifetime)
    case .release(.deleted): .deleted
    case .release(.remembered), .release(.uncounted): .released
    }
  }

  /// Sends the command.
  func send(of claim: Claim, to store: some RecordStore) async throws(StoreError) -> OwnerOutcome {
    switch self {
    case .complete(let completion): try await store.complete(claim, with: completion).outcome
    case .release(let release): try await store.release(claim, release)
    }
  }
}

/// The keeper of a claim's lease while its run lives: it renews the lease at a third of its duration, so that a retry
/// never takes the claim because the backend is slow.
///
/// It corresponds to the labels `owning` and `sent` of Tests/Model/claim.pml. Confined to its event loop.
/// `Worker.endLease` ends it.
final class LeaseKeeper<Store: RecordStore>: @unchecked Sendable {
  let claim: Claim
  /// The delivery for which the claim was granted.
  let delivery: Delivery
  /// Whether the client's response depends on the record. On a shadowed route it does not.
  let isEnforced: Bool
  /// The release that keeps the record of an attempt that does not count.
  private let uncountedRelease: Release
  let permit: SendPermit
  /// Its number among its worker's.
  var number = 0
  private let store: Store
  /// The records that this process knows; `nil` if the route never runs a request without the store.
  private var known: KnownRecords?
  /// The record's end, as it was noted last; `nil` while the run is in progress.
  private var notedEnd: (end: KnownRecord.OwnEnd, outcome: OwnerOutcome?)?
  private let context: EventLoopContext
  private let metrics: LoopMetrics
  /// The owner's last command, until the store has replied to it: a shutdown sends it in place of `markUnknown`.
  var lastCommand: LastCommand?
  /// The outcome of the run while it waits for the store and another delivery may get the record; `nil` if there is
  /// none.
  var unstored: TakeOverGuard.UnstoredOutcome?
  /// The memory that is taken for that command, in bytes.
  var commandBytes = 0
  /// Whether the store gave no reply to the command that was to end the record.
  var isEndUnstored = false
  /// Whether the outcome is recorded without the body of its response, if at all.
  var isUnkept = false
  /// Whether the loss of the attempt's outcome was logged.
  var isLossNoted = false
  private var renewal = Renewal.stopped
  /// Whether a renewal was ever requested.
  private var hasRequestedRenewal = false
  /// The time at which the last acknowledged grant was requested.
  private var grantedAt: BootInstant
  private var hasLapsed = false
  /// The reason why the latest renewal failed; `nil` if the latest one was acknowledged.
  private var failure: String?

  /// The metadata that name the claim in a log entry.
  var metadata: Logger.Metadata {
    [
      "record": "\(claim.id.text)", "route": "\(delivery.logEntry.route ?? "")",
      "attempt": .stringConvertible(claim.attempt),
    ]
  }

  /// The state of the lease's renewal.
  private enum Renewal {
    /// The next one begins when the timer ends.
    case scheduled(LoopTimers.Token)
    /// One waits for the store's reply. Another one follows it at once if that was requested meanwhile.
    case underWay(isDueAgain: Bool)
    /// The lease lapses.
    case stopped
  }

  init(
    _ claim: Claim, for delivery: Delivery, isEnforced: Bool, uncountedRelease: Release = .remembered,
    firstRenewal: Milliseconds? = nil, store: Store, context: EventLoopContext, metrics: LoopMetrics
  ) {
    self.claim = claim
    self.delivery = delivery
    self.isEnforced = isEnforced
    self.uncountedRelease = uncountedRelease
    self.store = store
    self.context = context
    self.metrics = metrics
    grantedAt = claim.requestedAt
    permit = SendPermit(requestedAt: claim.requestedAt, lease: claim.lease)
    schedule(in: firstRenewal ?? claim.lease / 3)
  }

  /// The time from the grant of a lease to its first renewal, where `count` leases are granted at once: between a sixth
  /// and a third of the lease, evenly. Their later renewals stay as far apart, since each follows the one before by a
  /// third.
  static func firstRenewal(of lease: Milliseconds, at place: Int, among count: Int) -> Milliseconds {
    invariant(place < count, "more leases are granted than were claimed at once")
    return lease / 3 - Milliseconds(lease.count / 6 * Int64(place) / Int64(count))
  }

  /// The bytes that a waiting command holds besides its outcome: the request's head with all that it was read with, and
  /// some objects.
  var heldBytes: Int { delivery.request.head.heldBytes + 1024 }

  /// Whether another delivery may get the record before the owner's next command is stored: the lease is renewed no
  /// more, or its renewal is overdue. What is left of it is otherwise longer than a call of the store may take.
  var mayBeOvertaken: Bool {
    if case .stopped = renewal { return true }
    return BootInstant.now - grantedAt >= claim.lease / 3
  }

  /// Has the record given back at the end of the process, if its request has not been sent: no byte of it leaves from
  /// now on. False if it has, or if the record has ended.
  func giveUpUnsent() -> Bool {
    guard lastCommand == nil, !permit.isSent else { return false }
    permit.revoke()
    lastCommand = .release(lastRelease(claim.onlyRejectedSoFar ? .deleted : uncountedRelease))
    return true
  }

  /// The release that ends the lease, which is renewed no more: one that keeps the record where a renewal was ever
  /// requested, since a delayed copy of that would make a deleted record anew (Tests/Model/claim.pml, LATE_DELETE).
  func lastRelease(_ decided: Release) -> Release {
    stopRenewing()
    return hasRequestedRenewal ? keeping(decided) : decided
  }

  /// The release in place of another that keeps the record in any case.
  func keeping(_ release: Release) -> Release { release == .deleted ? uncountedRelease : release }

  /// Lets the lease lapse from now on: the record is `unknown`, or has ended.
  func stopRenewing() {
    context.loop.assertInEventLoop()
    switch renewal {
    case .scheduled(let timer): context.timers.stop(timer)
    case .underWay: break
    case .stopped: return
    }
    renewal = .stopped
    noteLapse(by: .now)
  }

  /// Renews the lease at once: the store may have lost it, or judge it by another time than before.
  ///
  /// A renewal that is under way may have met the store as it was before, or fails with its connection.
  func renewNow() {
    context.loop.assertInEventLoop()
    switch renewal {
    case .scheduled(let timer):
      context.timers.stop(timer)
      beginRenewal()
    case .underWay: renewal = .underWay(isDueAgain: true)
    case .stopped: break
    }
  }

  private var isRenewing: Bool {
    if case .underWay = renewal { true } else { false }
  }

  private func beginRenewal() {
    renewal = .underWay(isDueAgain: false)
    context.task { [self] in await renew() }
  }

  /// Notes the record's end for the time when the store is away.
  ///
  /// - Parameter outcome: The store's reply; `nil` if it gave none.
  func note(_ end: KnownRecord.OwnEnd, _ outcome: OwnerOutcome? = nil) {
    context.loop.assertInEventLoop()
    notedEnd = (end, outcome)
    known?.change(claim.id) { $0 = $0?.ended(by: claim, as: end, outcome, now: $1) }
  }

  /// Notes the run among the records that this process knows, and from now on its end: its route may run requests
  /// without the store, or is about to.
  func enter(_ known: KnownRecords) {
    context.loop.assertInEventLoop()
    guard self.known == nil else { return }
    self.known = known
    known.change(claim.id) { [claim] record, _ in
      guard record?.isRunningHere != true else { return }
      record = KnownRecord(.owned, owner: claim.owner, fingerprint: claim.fingerprint)
    }
    if let notedEnd { note(notedEnd.end, notedEnd.outcome) }
  }

  private func schedule(in span: Milliseconds) {
    renewal = .scheduled(context.timers.start(milliseconds: span.count) { [self] in beginRenewal() })
  }

  /// Begins or schedules the renewal after the one that has ended.
  private func scheduleNext(in span: Milliseconds) {
    guard case .underWay(let isDueAgain) = renewal else {
      invariantBroken("a renewal follows one that is not under way")
    }
    if isDueAgain { beginRenewal() } else { schedule(in: span) }
  }

  private func renew() async {
    context.loop.assertInEventLoop()
    // The run may have ended between the timer and this task: a renewal would make its deleted record anew.
    guard isRenewing else { return }
    let requestedAt = BootInstant.now
    hasRequestedRenewal = true
    noteLapse(by: requestedAt)
    do throws(StoreError) {
      let outcome = try await store.renew(claim)
      guard isRenewing else { return }
      switch outcome {
      case .done:
        metrics.add(.leasesRenewed)
        failure = nil
        grantedAt = requestedAt
        permit.renewed(requestedAt: requestedAt, lease: claim.lease)
        scheduleNext(in: claim.lease / 3)
      case .lost, .replaced:
        // Nothing is sent any more. The client's response depends on the record's state when the owner ends.
        permit.revoke()
        stopRenewing()
      }
    } catch {
      failure = error.text
      if isRenewing { scheduleNext(in: claim.lease / 10) }
    }
  }

  /// Counts and logs, once, that the lease ran out while its owner lives: another delivery may find the record unknown.
  private func noteLapse(by time: @autoclosure () -> BootInstant) {
    // A run that has ended needs its record's end, not its lease.
    guard !hasLapsed, lastCommand == nil else { return }
    let now = time()
    guard now - grantedAt >= claim.lease else { return }
    hasLapsed = true
    logLapse(after: now - grantedAt)
  }

  /// - Parameter span: The time since the last acknowledged grant was requested.
  @inline(never)
  private func logLapse(after span: Milliseconds) {
    metrics.add(.leasesLapsed)
    // Without a failure every renewal was acknowledged, and this one begins too late.
    var line = metadata
    line["cause"] = "\(failure == nil ? "renewal_late" : "renewals_failed")"
    if let failure { line["error"] = "\(failure)" }
    line["lease_ms"] = .stringConvertible(Int(claim.lease.count))
    line["not_renewed_for_ms"] = .stringConvertible(Int(span.count))
    delivery.environment.logger.warning("a lease lapsed while its request was running", metadata: line)
  }
}
