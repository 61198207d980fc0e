import Idempotency
import Testing
import Wire

/// The owner's part of one record.
struct RecordRunTests {
  private static let lease = Claim.sample().lease
  private static let completion = Completion(
    outcome: .statusOnly(status: 201, location: nil), retention: .seconds(10), remember: .seconds(20))

  /// A time after the grant.
  private static func after(_ span: Milliseconds) -> BootInstant { BootInstant(nanoseconds: 0) + span }

  /// A run, of which a renewal is under way if that is demanded.
  private static func run(_ claim: Claim = .sample(), isRenewing: Bool = false) -> RecordRun {
    var run = RecordRun(claim, uncountedRelease: .uncounted)
    if isRenewing {
      _ = run.renewalIsDue()
      _ = run.renewalBegins(now: after(1))
    }
    return run
  }

  /// A run that listens for a late response.
  private static func listening() -> RecordRun {
    var run = run()
    _ = run.decide(.unknown(.timeOut), now: after(1))
    run.listens()
    return run
  }

  @Test func `a lease is renewed at a third of it, and sooner where the store fails`() {
    var run = Self.run()
    #expect(run.renewalIsDue() == .renew(after: nil))
    #expect(run.renewalBegins(now: Self.after(1)) == .request(nil))
    #expect(
      run.renewed(.done, requestedAt: Self.after(1), now: Self.after(2)) == .extend(next: Self.lease / 3))
    #expect(run.renewalIsDue() == .renew(after: nil))
    #expect(run.renewalBegins(now: Self.after(3)) == .request(nil))
    #expect(run.renewalFailed("cut") == .renew(after: Self.lease / 10))
    #expect(run.renewalIsDue() == .renew(after: nil))
  }

  @Test func `a renewal that is demanded while one is under way follows it at once, and once`() {
    for hasReply in [false, true] {
      var run = Self.run(isRenewing: true)
      #expect(run.renewalIsDue() == .none)
      #expect(run.renewalIsDue() == .none)
      let action =
        hasReply
        ? run.renewed(.done, requestedAt: Self.after(1), now: Self.after(2)) : run.renewalFailed("cut")
      #expect(action == (hasReply ? .extend(next: nil) : .renew(after: nil)))
      #expect(run.renewalBegins(now: Self.after(3)) == .request(nil))
      #expect(
        run.renewed(.done, requestedAt: Self.after(3), now: Self.after(4)) == .extend(next: Self.lease / 3))
    }
  }

  @Test(arguments: [OwnerOutcome.lost(.released(attempt: 1)), .lost(.absent), .replaced])
  func `an owner that has lost its record sends nothing and does not renew again`(_ outcome: OwnerOutcome) {
    var run = Self.run(isRenewing: true)
    #expect(run.renewalIsDue() == .none)
    #expect(run.renewed(outcome, requestedAt: Self.after(1), now: Self.after(2)) == .revoke(nil))
    #expect(run.renewalIsDue() == .none)
    #expect(run.renewalBegins(now: Self.after(3)) == .none)
    // The record may have another owner by the time at which its outcome is stored.
    #expect(run.decide(.completed(Self.completion), now: Self.after(4)).action == .holdClaims)
  }

  /// A renewal behind a release or a mark would make the record anew.
  @Test(arguments: [RecordRun.End.released(.deleted), .released(.remembered), .unknown(.status)])
  func `a lease is not renewed from the decision on that gives it up`(_ end: RecordRun.End) {
    for isRenewing in [false, true] {
      var run = Self.run(isRenewing: isRenewing)
      if !isRenewing { #expect(run.renewalIsDue() == .renew(after: nil)) }
      #expect(run.decide(end, now: Self.after(2)).action == .stop(nil))
      #expect(run.renewalBegins(now: Self.after(3)) == .none)
      #expect(run.renewed(.done, requestedAt: Self.after(1), now: Self.after(3)) == .none)
      #expect(run.renewalFailed("cut") == .none)
      #expect(run.renewalIsDue() == .none)
    }
  }

  @Test func `a lease is renewed until the outcome is stored`() {
    var run = Self.run()
    #expect(run.decide(.completed(Self.completion), now: Self.after(1)).action == .none)
    #expect(run.renewalIsDue() == .renew(after: nil))
    #expect(run.repeats(.completed(Self.completion), known: .unknown) == .holdClaims)
    #expect(run.renewalBegins(now: Self.after(2)) == .request(nil))
    #expect(
      run.renewed(.done, requestedAt: Self.after(2), now: Self.after(3)) == .extend(next: Self.lease / 3))
    #expect(run.leaves() == .leave)
    #expect(run.renewalIsDue() == .none)
  }

  @Test func `claims wait for an outcome once its lease may lapse before it is stored`() {
    for (span, action) in [
      (Self.lease / 3 - 1, RecordRun.Action.none), (Self.lease / 3, .holdClaims), (Self.lease, .holdClaims),
    ] {
      var run = Self.run()
      #expect(run.decide(.completed(Self.completion), now: Self.after(span)).action == action)
    }
    var renewed = Self.run(isRenewing: true)
    _ = renewed.renewed(.done, requestedAt: Self.after(1), now: Self.after(2))
    #expect(renewed.decide(.completed(Self.completion), now: Self.after(Self.lease / 3)).action == .none)
    var late = Self.listening()
    #expect(late.decide(.completed(Self.completion), now: Self.after(2)).action == .holdClaims)
  }

  /// A delayed copy of the renewal would make a deleted record anew.
  @Test(arguments: [Release.remembered, .uncounted])
  func `a record of which a renewal was requested is kept`(kept: Release) {
    for isRenewing in [false, true] {
      var run = RecordRun(.sample(), uncountedRelease: kept)
      if isRenewing {
        _ = run.renewalIsDue()
        _ = run.renewalBegins(now: Self.after(1))
      }
      for release in [Release.remembered, .uncounted] { #expect(run.permitted(release) == release) }
      #expect(run.permitted(.deleted) == (isRenewing ? kept : .deleted))
      let end = run.decide(.released(.deleted), now: Self.after(2)).end
      #expect(end == .released(isRenewing ? kept : .deleted))
      #expect(run.end == end)
    }
  }

  @Test func `a lapse is noted once, with the reason for it`() {
    var late = Self.run()
    _ = late.renewalIsDue()
    #expect(late.renewalBegins(now: Self.after(Self.lease - 1)) == .request(nil))
    _ = late.renewalFailed("cut")
    _ = late.renewalIsDue()
    let lapse = RecordRun.Lapse(span: Self.lease, failure: "cut")
    #expect(late.renewalBegins(now: Self.after(Self.lease)) == .request(lapse))
    _ = late.renewalFailed("cut")
    #expect(late.decide(.unknown(.status), now: Self.after(Self.lease + 1)).action == .stop(nil))
    // The run ends before the next renewal.
    var still = Self.run()
    #expect(
      still.decide(.released(.remembered), now: Self.after(Self.lease)).action
        == .stop(RecordRun.Lapse(span: Self.lease, failure: nil)))
    // Its owner learns that it has lost the record.
    var lost = Self.run(isRenewing: true)
    #expect(
      lost.renewed(.replaced, requestedAt: Self.after(1), now: Self.after(Self.lease))
        == .revoke(RecordRun.Lapse(span: Self.lease, failure: nil)))
  }

  /// It needs its record's end, not its lease.
  @Test func `a run whose end is decided has no lapse`() {
    var stored = Self.run()
    _ = stored.renewalIsDue()
    _ = stored.decide(.completed(Self.completion), now: Self.after(1))
    #expect(stored.renewalBegins(now: Self.after(Self.lease)) == .request(nil))
    #expect(
      stored.renewed(.replaced, requestedAt: Self.after(1), now: Self.after(Self.lease)) == .revoke(nil))
    var pausing = Self.run()
    _ = pausing.renewalIsDue()
    pausing.pauses(before: .remembered)
    #expect(pausing.renewalBegins(now: Self.after(Self.lease)) == .request(nil))
    #expect(
      pausing.decide(.released(.remembered), now: Self.after(Self.lease)).action
        == .stop(RecordRun.Lapse(span: Self.lease, failure: nil)))
  }

  @Test func `a run is over once its record has an end, or gets it without the run`() {
    var stored = Self.run()
    #expect(!stored.hasEnd && stored.knownEnd == nil && stored.end == nil)
    _ = stored.decide(.completed(Self.completion), now: Self.after(1))
    #expect(!stored.hasEnd && stored.knownEnd == nil && stored.end == .completed(Self.completion))
    #expect(stored.leaves() == .leave)
    #expect(stored.hasEnd && stored.end == nil && !stored.isUnanswered)
    var repeated = Self.run()
    let (end, _) = repeated.decide(.released(.remembered), now: Self.after(1))
    #expect(repeated.hasEnd == false)
    repeated.unanswered()
    #expect(repeated.repeats(end, known: end.known) == .none)
    #expect(repeated.hasEnd && repeated.knownEnd == .released && repeated.end == end && repeated.isUnanswered)
    #expect(repeated.leaves() == .leave)
  }

  @Test func `a late response ends a record that was marked`() {
    for end in [RecordRun.End.completed(Self.completion), .released(.remembered), .unknown(.malformed)] {
      var run = Self.listening()
      #expect(!run.hasEnd && run.knownEnd == .unknown && run.end == nil)
      #expect(run.decide(end, now: Self.after(2)).end == end)
      #expect(run.leaves() == .leave)
    }
    var silent = Self.listening()
    #expect(silent.leaves() == .leave)
  }

  @Test func `a run that leaves its record without an end stops the process`() async {
    await #expect(processExitsWith: .failure) {
      var run = RecordRun(.sample())
      _ = run.leaves()
    }
  }

  private static let known: [(RecordRun.End, KnownRecord.OwnEnd)] = [
    (.completed(completion), .completed(.seconds(20))), (.released(.deleted), .deleted),
    (.released(.remembered), .released), (.released(.uncounted), .released), (.unknown(nil), .unknown),
  ]

  @Test(arguments: known)
  func `a process knows an end while the store is away`(_ end: RecordRun.End, _ known: KnownRecord.OwnEnd) {
    #expect(end.known == known)
  }

  @Test func `a loss is noted once`() {
    var run = Self.run()
    #expect(!run.isLossNoted && run.noteLoss())
    #expect(run.isLossNoted && !run.noteLoss())
  }

  @Test(arguments: [1, 3, 100, 1000])
  func `the leases of a batch are renewed in time, and not all at once`(count: Int) {
    let spans = (0..<count).map {
      RecordRun.firstRenewal(of: .seconds(30), at: $0, among: count).count
    }
    #expect(spans.first == 10_000 && spans.allSatisfy { 5000...10_000 ~= $0 })
    // The timers' precision.
    let perTick = Dictionary(grouping: spans) { $0 / 10 }.mapValues(\.count)
    #expect(perTick.values.max() == max(1, count / 500))
  }
}

/// Runs that end with their process.
struct RecordRunCutTests {
  private static let completion = Completion(
    outcome: .statusOnly(status: 201, location: nil), retention: .seconds(10), remember: .seconds(20))
  private static let now = BootInstant(nanoseconds: 1_000_000)

  @Test func `what was never sent is given back`() {
    for (isFirst, isRenewing, release) in [
      (true, false, Release.deleted), (true, true, .uncounted), (false, false, .uncounted),
    ] {
      var run = RecordRun(.sample(onlyRejectedSoFar: isFirst), uncountedRelease: .uncounted)
      if isRenewing {
        _ = run.renewalIsDue()
        _ = run.renewalBegins(now: Self.now)
      }
      let (cut, action) = run.cut(isSent: false, now: Self.now)
      #expect(cut == .refuseAsUnsent && action == .stop(nil))
      #expect(run.end == .released(release) && !run.hasEnd)
    }
  }

  @Test func `what was sent is marked unknown, also if it listens or is being marked`() {
    var running = RecordRun(.sample())
    #expect(running.cut(isSent: true, now: Self.now).0 == .refuseAsLost)
    #expect(running.end == .unknown(.shutdown))
    var marking = RecordRun(.sample())
    _ = marking.decide(.unknown(.timeOut), now: Self.now)
    #expect(marking.cut(isSent: true, now: Self.now).0 == .refuseAsLost)
    #expect(marking.end == .unknown(.shutdown))
    // The reply to the mark comes after that.
    marking.listens()
    #expect(marking.end == .unknown(.shutdown))
    var listening = RecordRun(.sample())
    _ = listening.decide(.unknown(.timeOut), now: Self.now)
    listening.listens()
    #expect(listening.cut(isSent: true, now: Self.now).0 == .refuseAsLost)
    #expect(listening.end == .unknown(.shutdown))
  }

  @Test func `an end that was decided before is sent once more`() {
    var storing = RecordRun(.sample())
    _ = storing.decide(.completed(Self.completion), now: Self.now)
    #expect(storing.cut(isSent: true, now: Self.now).0 == .awaitRun)
    #expect(storing.end == .completed(Self.completion))
    #expect(storing.renewalIsDue() == .none)
    var repeating = RecordRun(.sample())
    let (end, _) = repeating.decide(.released(.deleted), now: Self.now)
    _ = repeating.repeats(end, known: end.known)
    #expect(repeating.cut(isSent: true, now: Self.now).0 == .awaitRun)
    #expect(repeating.end == .released(.deleted))
    // The attempt before the pause is over.
    var pausing = RecordRun(.sample(), uncountedRelease: .uncounted)
    pausing.pauses(before: .deleted)
    #expect(pausing.cut(isSent: true, now: Self.now).0 == .awaitRun)
    #expect(pausing.end == .released(.uncounted))
  }

  /// A mark that is under way as well would make a deleted record anew.
  @Test func `a rejection that comes while the mark of a process that ends is under way keeps the record`() {
    var run = RecordRun(.sample(onlyRejectedSoFar: true), uncountedRelease: .uncounted)
    _ = run.cut(isSent: true, now: Self.now)
    #expect(run.decide(.released(.deleted), now: Self.now).end == .released(.uncounted))
    var unsent = RecordRun(.sample(onlyRejectedSoFar: true), uncountedRelease: .uncounted)
    _ = unsent.cut(isSent: false, now: Self.now)
    #expect(unsent.decide(.released(.deleted), now: Self.now).end == .released(.deleted))
  }

  @Test func `the client of a response that leaves its outcome unknown gets that from a process that ends`() {
    var run = RecordRun(.sample())
    _ = run.decide(.unknown(.status), now: Self.now)
    #expect(run.cut(isSent: true, now: Self.now).0 == .awaitRun)
    #expect(run.end == .unknown(.status))
    #expect(run.leaves() == .leave && run.end == nil)
  }

  /// A response that comes while the process ends counts more than the mark.
  @Test func `a run that was cut still ends its record`() {
    for end in [RecordRun.End.completed(Self.completion), .released(.remembered), .unknown(.status)] {
      var run = RecordRun(.sample())
      _ = run.cut(isSent: true, now: Self.now)
      #expect(run.decide(end, now: Self.now).end == end)
      #expect(run.end == end)
      #expect(run.leaves() == .leave)
    }
  }
}
