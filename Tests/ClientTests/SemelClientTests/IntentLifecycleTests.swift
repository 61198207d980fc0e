import ClientTestSupport
import Foundation
@testable import SemelClient
import Testing

struct IntentLifecycleTests {
  private let start = Date(timeIntervalSince1970: 1_767_225_600)

  private func verdict(_ response: Response) -> Verdict {
    Classifier().verdict(on: response, to: "/v1/orders", now: start)
  }

  /// Runs a lifecycle through deliveries that end as listed, each at once, and returns the waits and the end.
  private func run(
    _ lifecycle: inout IntentLifecycle, _ verdicts: [Verdict], grantsRetry: Bool = true
  ) -> (waits: [Duration], end: IntentLifecycle.End?) {
    var (now, waits) = (start, [Duration]())
    for verdict in verdicts {
      if case .end(let end) = lifecycle.begin(now: now) { return (waits, end) }
      switch lifecycle.delivered(verdict, start: now, now: now, random: 0, grantsRetry: { grantsRetry }) {
      case .end(let end): return (waits, end)
      case .wait(let wait):
        waits.append(wait)
        now += wait.inSeconds
      }
    }
    return (waits, nil)
  }

  @Test func `a success ends the intent`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    let response = Response.executed(201, "7")
    #expect(run(&call, [verdict(response)]).end == .completed(response, wasReplayed: false))
  }

  @Test func `a lost response is asked for again, and the replay ends the intent`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    let response = Response.replayed(201)
    #expect(
      run(&call, [Verdict(.lost("")), verdict(response)]).end == .completed(response, wasReplayed: true))
  }

  @Test func `attempts are capped, and nothing was executed where nothing was sent`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    let end = run(&call, Array(repeating: Verdict(TransportError.notSent("")), count: 9)).end
    #expect(end == .notExecuted(.attempts, nil))
    #expect(call.progress.deliveries == 5)
  }

  @Test func `an intent whose delivery was lost is unknown when the attempts are used up`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    let verdicts = [Verdict(.lost(""))] + Array(repeating: Verdict(TransportError.notSent("")), count: 9)
    #expect(run(&call, verdicts).end == .unknown(nil))
  }

  @Test func `a wait that the server asked for costs no attempt and is at least that long`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    let busy = verdict(.problem(503, "overloaded", isRetryable: true, ["Retry-After": "1"]))
    let (waits, end) = run(&call, Array(repeating: busy, count: 20) + [verdict(.executed(200))])
    #expect(waits == Array(repeating: .seconds(1), count: 20))
    #expect(end == .completed(.executed(200), wasReplayed: false))
    #expect(call.progress.attempts == 0)
  }

  @Test func `a wait that the server asked for is capped`() {
    var queued = IntentLifecycle.queued(IntentProgress(createdAt: start), policy: .standard)
    #expect(run(&queued, [verdict(Response(503, ["Retry-After": "999999"]))]).waits == [.seconds(3600)])
  }

  @Test func `a delivery elsewhere costs no attempt`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    let inFlight = verdict(.problem(409, "in_flight", isRetryable: true, ["Retry-After": "1"]))
    #expect(run(&call, Array(repeating: inFlight, count: 30) + [verdict(.replayed(200))]).end != nil)
    #expect(call.progress.attempts == 0)
  }

  @Test func `no delivery begins after the time of a call is over`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    let busy = verdict(.problem(503, "overloaded", isRetryable: true, ["Retry-After": "25"]))
    let (waits, end) = run(&call, Array(repeating: busy, count: 20))
    #expect(waits.count == 2)
    #expect(end == .notExecuted(.time, busy.response))
  }

  @Test func `an unknown outcome that will not settle ends the intent at once`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    let response = Response.problem(409, "outcome_unknown", isRetryable: false)
    #expect(run(&call, [verdict(response)]).end == .unknown(response.problem))
  }

  @Test func `a refusal after a lost response may be the duplicate's: the outcome is unknown`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    #expect(run(&call, [Verdict(.lost("")), verdict(Response(422))]).end == .unknown(nil))
  }

  @Test func `a recorded refusal after a lost response is the intent's own`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    #expect(run(&call, [Verdict(.lost("")), verdict(.replayed(422))]).end == .rejected(.replayed(422)))
  }

  @Test func `an empty budget ends a call, and makes a queued intent wait without an attempt`() {
    var call = IntentLifecycle.call(at: start, policy: .standard)
    #expect(
      run(&call, [verdict(Response(429))], grantsRetry: false).end == .notExecuted(.budget, Response(429)))
    var queued = IntentLifecycle.queued(IntentProgress(createdAt: start), policy: .standard)
    #expect(run(&queued, [verdict(Response(429))], grantsRetry: false).end == nil)
    #expect(queued.progress.attempts == 0 && queued.progress.failures == 1)
  }

  @Test func `without budget a queued intent waits up to half a minute, and longer as it fails again`() {
    var queued = IntentLifecycle.queued(IntentProgress(createdAt: start), policy: .standard)
    let bounds = (0..<8).map { _ -> Duration? in
      guard case .send = queued.begin(now: start) else { return nil }
      let action = queued.delivered(
        Verdict(TransportError.notSent("")), start: start, now: start, random: 32_000
      ) { false }
      guard case .wait(let pause) = action else { return nil }
      return pause
    }
    // The random number is the longest pause of the first six, and lies within the range of the others.
    #expect(bounds == Array(repeating: .seconds(32), count: 8))
    #expect(queued.progress.attempts == 0)
  }

  @Test func `refused credentials end a call, and a queued intent waits for others`() {
    let refusal = verdict(Response(401))
    var call = IntentLifecycle.call(at: start, policy: .standard)
    #expect(run(&call, [refusal]).end == .notExecuted(.credentials, Response(401)))
    var queued = IntentLifecycle.queued(IntentProgress(createdAt: start), policy: .standard)
    #expect(run(&queued, [refusal]).end == nil)
    #expect(queued.progress.attempts == 0)
  }

  @Test func `nothing is sent once the server may have forgotten the key`() {
    var progress = IntentProgress(createdAt: start)
    progress.mayHaveRun = true
    progress.firstSentAt = start
    var queued = IntentLifecycle.queued(progress, policy: .standard)
    #expect(queued.begin(now: start + 86_399) == .send)
    queued = .queued(progress, policy: .standard)
    #expect(queued.begin(now: start + 86_400) == .end(.unknown(nil)))
  }

  @Test func `the server's own word on how long it remembers counts`() {
    var progress = IntentProgress(createdAt: start)
    progress.mayHaveRun = true
    progress.firstSentAt = start
    progress.expires = start + 3 * 86_400
    var queued = IntentLifecycle.queued(progress, policy: .standard)
    #expect(queued.begin(now: start + 2 * 86_400) == .send)
  }

  @Test func `an intent that was never carried out expires after seven days`() {
    var queued = IntentLifecycle.queued(IntentProgress(createdAt: start), policy: .standard)
    #expect(queued.begin(now: start + 7 * 86_400) == .end(.notExecuted(.time, nil)))
  }

  @Test func `a report that nothing was carried out ends the doubt`() {
    var progress = IntentProgress(createdAt: start)
    progress.mayHaveRun = true
    progress.firstSentAt = start
    var queued = IntentLifecycle.queued(progress, policy: .standard)
    queued.provedUnexecuted()
    #expect(queued.begin(now: start + 2 * 86_400) == .send)
  }

  @Test(arguments: 0..<200)
  func `whatever happens, an error proves that nothing ran, and no intent exceeds its limits`(seed: UInt64) {
    var generator = SeededGenerator(seed)
    let ends = [
      Verdict(.lost("")), Verdict(TransportError.notSent("")), verdict(Response(500)), verdict(Response(429)),
      verdict(Response(503, ["Retry-After": "3"])), verdict(.problem(409, "in_flight", isRetryable: true)),
      verdict(Response(422)), verdict(.executed(409)),
      verdict(.problem(409, "outcome_unknown", isRetryable: false)),
    ]
    var lifecycle = IntentLifecycle.call(at: start, policy: .standard)
    var (now, lost) = (start, false)
    for _ in 0..<200 {
      guard case .send = lifecycle.begin(now: now) else { return #expect(now >= start + 60) }
      #expect(now < start + 60)
      let verdict = ends[Int.random(in: 0..<ends.count, using: &generator)]
      lost = lost || verdict.mayHaveRun
      let isGranted = Bool.random(using: &generator)
      let action = lifecycle.delivered(verdict, start: now, now: now, random: generator.next()) { isGranted }
      switch action {
      case .wait(let wait): now += wait.inSeconds
      case .end(.notExecuted): return #expect(!lost)
      case .end(.rejected): return #expect(!lost || verdict.isProven)
      case .end: return
      }
      #expect(lifecycle.progress.attempts < 5)
    }
    Issue.record("The call did not end.")
  }
}
