import Testing

@testable import Conformance

/// Findings and verdicts on evidence that is made up.
struct EvidenceTests {
  private static let request = RawRequest(method: "POST", target: "/", lines: [], body: [])

  private func evidence(_ statuses: Int..., executions: Executions = .unknown) -> Evidence {
    Evidence(
      exchanges: statuses.map {
        Exchange(request: Self.request, outcome: .response(RawResponse(status: $0, body: [1])))
      }, executions: executions)
  }

  @Test func `executions are judged by an oracle alone`() {
    #expect(evidence(201, 201).ran(1) == .undecided("the executions are not known"))
    #expect(evidence(201, 201, executions: .exactly(1)).ran(1) == .met("run once"))
    #expect(evidence(201, 201, executions: .exactly(2)).ran(1) == .violated("run twice instead of once"))
    #expect(evidence(201, executions: .exactly(0)).ran(1) == .violated("not run instead of once"))
    #expect(evidence(201, executions: .exactly(3)).ran(0) == .violated("run 3 times instead of not at all"))
  }

  @Test func `ids in responses prove what was seen, and no absence`() {
    #expect(evidence(201, 201, executions: .atLeast(2)).ran(1) == .violated("run twice instead of once"))
    #expect(
      evidence(201, 201, executions: .atLeast(1)).ran(1) == .met("run once, by the ids in the responses"))
    guard case .undecided = evidence(201, 409, executions: .atLeast(1)).ran(1) else {
      Issue.record("a refusal shows no id, and may have run")
      return
    }
  }

  @Test(arguments: [
    (Level.must, Verdict.Kind.fail), (.should, .warn), (.may, .info),
  ])
  func `a violation counts by its level`(level: Level, kind: Verdict.Kind) {
    #expect(Verdict(.violated("so"), at: level) == Verdict(kind, "so"))
    #expect(Verdict(.met(), at: level).kind == .pass)
    #expect(Verdict(.observed("so"), at: level).kind == .info)
    #expect(Verdict(.undecided("so"), at: level).kind == .inconclusive)
  }

  @Test func `of several conditions a violation counts first`() {
    #expect(Finding.all(.met("a"), .undecided("b"), .violated("c")) == .violated("c"))
    #expect(Finding.all(.met("a"), .undecided("b")) == .undecided("b"))
    #expect(Finding.all(.met("a"), .met("b")) == .met("a"))
  }

  @Test func `an old response to another payload is named as one`() {
    #expect(evidence(201, 201).refused(1) == .violated("the response to the first delivery was given (201)"))
    #expect(evidence(201, 422).refused(1) == .met("422"))
    #expect(evidence(201, 500).refused(1) == .violated("failed with 500"))
    #expect(evidence(201, 400).refused(1, with: [422]) == .violated("refused with 400 instead of 422"))
  }

  @Test func `a missing response decides nothing`() {
    var evidence = evidence(201, 201)
    evidence.exchanges[1].outcome = .none("the connection ended")
    #expect(evidence.sameResult(0, 1) == .undecided("delivery 2: the connection ended"))
    #expect(evidence.refused(1) == .undecided("delivery 2: the connection ended"))
  }

  @Test func `a key that is ignored is told from one that is refused`() {
    let taken = Finding.observed("taken as a key")
    #expect(evidence(400, 400).oneIntentOrRefused(taken: taken) == .met("refused with 400"))
    #expect(evidence(201, 201).oneIntentOrRefused(taken: taken) == taken)
    #expect(
      evidence(201, 201, executions: .exactly(2)).oneIntentOrRefused(taken: taken)
        == .violated("the key was ignored: run twice instead of once"))
    #expect(evidence(500, 500).oneIntentOrRefused(taken: taken) == .violated("failed with 500"))
  }

  @Test func `equal results decide nothing where other keys get them, too`() {
    func alike(_ executions: Executions = .unknown) -> Evidence {
      var alike = evidence(201, 201, executions: executions)
      alike.keysShareResults = true
      return alike
    }
    let undecided = Finding.undecided(
      "another key has the same result: only an oracle of executions can tell")
    #expect(alike().isReplay(1) == nil && alike(.exactly(1)).isReplay(1) == true)
    #expect(alike(.exactly(2)).isReplay(1) == false)
    #expect(alike().sameResult(0, 1) == undecided && alike(.exactly(1)).sameResult(0, 1) == .met("201"))
    #expect(alike(.exactly(2)).sameResult(0, 1) == .undecided("run twice, with equal results"))
    #expect(alike().treatmentOfSpelling() == undecided)
    #expect(alike(.exactly(1)).treatmentOfSpelling() == .observed("the same payload"))
    #expect(alike().oneIntentOrRefused() == undecided)
    #expect(alike(.exactly(1)).oneIntentOrRefused() == .met("taken as a key"))
    // Two keys in one request are not to be accepted, whatever becomes of them.
    #expect(alike().oneIntentOrRefused(taken: .violated("accepted")) == .violated("accepted"))
    #expect(alike().refused(1) == .violated("accepted (201)"))
    #expect(alike(.exactly(1)).refused(1) == .violated("the response to the first delivery was given (201)"))
  }

  @Test func `another response without another run is a behaviour, and with one a violation`() {
    #expect(
      evidence(201, 200, executions: .exactly(1)).treatmentOfSpelling()
        == .observed("the same payload, another response"))
    #expect(
      evidence(201, 200, executions: .atLeast(1)).treatmentOfSpelling()
        == .observed("the same payload, another response"))
    #expect(
      evidence(201, 200, executions: .exactly(2)).treatmentOfSpelling()
        == .violated("run twice instead of once"))
    #expect(evidence(201, 200).treatmentOfSpelling() == .violated("another result under the same key"))
    #expect(
      evidence(201, 200, executions: .exactly(1)).oneIntentOrRefused()
        == .observed("taken as a key, with another response"))
    #expect(
      evidence(201, 200, executions: .exactly(1)).retried() == .observed("the same request, another response")
    )
    #expect(evidence(201, 422, executions: .exactly(1)).retried() == .violated("201, then 422"))
    #expect(evidence(201, 201, executions: .exactly(2)).retried() == .violated("run twice instead of once"))
  }

  @Test func `a key that did not run is a used one, unless it was fresh`() {
    let unrun = evidence(201, 201, executions: .exactly(0))
    #expect(unrun.oneIntentOrRefused() == .violated("accepted, but not run"))
    #expect(
      unrun.oneIntentOrRefused(isFresh: false) == .observed("taken as a key that was used before"))
  }

  @Test func `an endless response is no refusal`() {
    var evidence = evidence(400, 400)
    evidence.exchanges[0].outcome = .endless("a body of more than 8 MiB")
    let undecided = Finding.undecided("delivery 1: a body of more than 8 MiB")
    #expect(evidence.oneIntentOrRefused() == undecided)
    #expect(evidence.refusedByClosing(0) == undecided)
    #expect(evidence.twoIntents() == undecided)
    evidence.exchanges[0].outcome = .none("the connection ended")
    #expect(evidence.refusedByClosing(0) == .met("the connection was closed"))
  }

  @Test func `two keys with one result are one`() {
    #expect(evidence(201, 201, executions: .exactly(2)).twoIntents() == .met("run twice"))
    #expect(
      evidence(201, 201, executions: .exactly(1)).twoIntents() == .violated("run once instead of 2 times"))
    #expect(
      evidence(201, 201, executions: .atLeast(1)).twoIntents()
        == .violated("the second key got the first one's result"))
    #expect(evidence(201, 201).twoIntents() == .undecided("both have the same result"))
    #expect(evidence(201, 409).twoIntents() == .violated("the second key is refused with 409"))
    #expect(evidence(400, 201).twoIntents() == .met("refused with 400"))
  }

  @Test(arguments: [
    ("keys are kept for 24h", true), ("We keep keys for 7 days.", true), ("Keys live for 24 h", true),
    ("The TTL of a key is long.", true), ("Keys expire.", true), ("Send a key.", false),
    ("Call 1-800-24 or see h1.", false), ("color: #3d3d3d", false),
  ])
  func `a page names the time for which keys are remembered`(page: String, names: Bool) {
    #expect(Catalogue.namesRetention(page) == names)
  }

  @Test func `a conflict counts only while the first delivery is in flight`() {
    var evidence = evidence(201, 409)
    evidence.exchanges[0].ended = .seconds(2)
    evidence.exchanges[1].sent = .seconds(1)
    #expect(evidence.conflict() == .met("409"))
    evidence.exchanges[1].sent = .seconds(3)
    #expect(
      evidence.conflict() == .undecided("the slow request was over before the second delivery was sent"))
  }

  @Test func `a wait for the first result is a deviation unless the profile allows it`() {
    var evidence = evidence(201, 201)
    evidence.exchanges[0].ended = .seconds(2)
    #expect(evidence.conflict() == .violated("waited for the first delivery's result"))
    evidence.expected = .semel
    #expect(evidence.conflict() == .met("waited for the first delivery's result"))
  }

  @Test func `a duplicate in flight that ran, or may have, did not wait`() {
    var evidence = evidence(201, 201, executions: .exactly(2))
    evidence.exchanges[0].ended = .seconds(2)
    evidence.expected = .semel
    #expect(evidence.conflict() == .violated("run twice instead of once"))
    evidence.executions = .unknown
    evidence.keysShareResults = true
    guard case .undecided = evidence.conflict() else {
      Issue.record("equal results of two keys show no wait")
      return
    }
    evidence.expected = .ietf
    #expect(evidence.conflict() == .violated("accepted (201)"))
  }

  @Test func `a first delivery that was overtaken is the duplicate`() {
    var evidence = evidence(409, 201)
    evidence.exchanges[0].ended = .seconds(2)
    #expect(evidence.conflict() == .met("409"))
  }
}
