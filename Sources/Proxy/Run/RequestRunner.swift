import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

/// The run of one delivery, from its head to its response: identify, claim, and then replay, wait, refuse, or become
/// the record's owner (`OwnedRun`). A request without a record is passed through (`PassThrough`).
///
/// `ClaimLifecycle` decides what follows what. This file carries out its decisions.
struct RequestRunner<Store: RecordStore, Backend: Upstream>: Sendable {
  let worker: Worker<Store, Backend>
  let delivery: Delivery

  var environment: ProxyEnvironment { worker.environment }
  var configuration: ConfigurationSnapshot { delivery.configuration }
  var head: MessageHead { delivery.request.head }

  /// Begins the run. A run that has to wait continues in a task of its own, which outlives the connection.
  func start() {
    let inFlight = environment.counters.change(.inFlight, by: 1)
    invariant(inFlight > 0, "more requests have ended than were begun")
    beginTrace()
    do throws(Problem) {
      guard !environment.isDraining else { throw .overloaded(.draining) }
      guard inFlight <= configuration.limits.maxInFlight else { throw .overloaded(.busy) }
      if let failure = delivery.bodyFailure { throw failure }
      // A body that is not whole waits until it is, or until the response begins.
      guard delivery.bodyHasEnded || delivery.memory.enterWaiting(from: delivery.peer) else {
        throw .overloaded(.busy)
      }
      switch try identify(body: delivery.wholeBody) {
      case .keyed(let call): return try startClaim(call)
      case .passed(let target, let route, let label) where !PassThrough(runner: self, label: label).awaitsBody:
        return try passThrough(target, by: route, label)
      case .published(let response): respond(with: response)
      case let subject: return continueInTask { () throws(Problem) in try await run(subject) }
      }
    } catch {
      refuse(error)
    }
    finish()
  }

  @inline(never)
  private func passThrough(
    _ target: RequestTarget, by route: Route?, _ label: ResponseLabel?
  ) throws(Problem) {
    try refuseWithoutMemory()
    try PassThrough(runner: self, label: label).start(target, by: route) { finish() }
  }

  /// Runs the rest of the delivery in a task.
  private func continueInTask(_ rest: @escaping @Sendable () async throws(Problem) -> Void) {
    _ = Task(executorPreference: worker.context.executor) {
      do throws(Problem) { try await rest() } catch { refuse(error) }
      finish()
    }
  }

  func run(_ subject: Subject) async throws(Problem) {
    switch subject {
    case .passed(let target, let route, let label):
      try refuseWithoutMemory()
      let passage = PassThrough(runner: self, label: label)
      do throws(PassageFailure) { try await passage.run(target, by: route) } catch { passage.fail(error) }
    case .keyed(let call):
      try await claimInTask(call)
    case .batch(let batch):
      noteItems(of: batch)
      try await BatchRun(batch, by: self).run()
    case .incomplete(let limit):
      try await run(try identify(body: try await delivery.collectBody(limit: limit)))
    case .large(let request):
      try await run(try await identify(request))
    case .operation(let body, let target):
      await readOperation(body, target)
      try await run(try identify(body: body))
    case .shadowed(let request):
      try await ShadowRun(runner: self, request: request).run()
    case .published(let response):
      respond(with: response)
    case .unverified(let places):
      await verifyTokens(at: places)
      try await run(try identify(body: delivery.wholeBody))
    case .inquiry(let inquiry):
      try await run(inquiry)
    }
  }

  /// Refuses a request whose response would find no room, before anything is claimed or sent.
  private func refuseWithoutMemory() throws(Problem) {
    guard delivery.memory.hasRoom else { throw .overloaded(.busy) }
  }

  /// Reserves the room for the response before the claim; refuses if there is none. A delivery that retries has it
  /// already.
  func reserveCapture(_ call: KeyedCall) throws(Problem) {
    guard !delivery.memory.isReserved else { return }
    try refuseWithoutMemory()
    guard delivery.memory.reserve(for: call.caller) else { throw .overloaded(.busy) }
  }

  /// Admits the owner of a granted claim to its run; otherwise the claim is to be undone.
  func admit(_ claim: Claim, of call: KeyedCall) throws(Problem) {
    // A process that ends its runs sends nothing any more: nobody would read the response.
    guard !worker.isStopping else { throw .overloaded(.draining) }
    try takeNewKey(of: claim, for: call)
    // A delivery that has waited has no room yet.
    guard delivery.memory.reserve(for: call.caller) else { throw .overloaded(.busy) }
    countSighting(claim, of: call)
  }

  private func finish() {
    if let caller = delivery.quotaCaller { environment.quotas.leave(caller, items: delivery.quotaItems) }
    environment.counters.change(.inFlight, by: -1)
    invariant(environment.counters[.inFlight] >= 0, "a request ends twice")
    delivery.runEnded()
    report()
  }

  /// Claim: one delivery becomes the record's owner; the others replay, wait, or are refused. A task is made only for
  /// what has to wait: most duplicates get their response by the cache or by the store's first reply.
  @inline(never)
  private func startClaim(_ call: KeyedCall) throws(Problem) {
    let known = knownAction(of: call, call.fingerprint)
    if let known, respond(by: known, from: .cache) { return finish() }
    try enterQuota(of: call)
    let request = newClaimRequest(of: call, owner: worker.newOwner())
    if let known {
      return continueInTask { () throws(Problem) in try await carryOut(known, after: request, of: call) }
    }
    try reserveCapture(call)
    let requestedAt = noteClaimSent()
    worker.store.startClaim(request) { reply in
      noteClaimReply(requestedAt)
      if call.lifecycle.mayOpen(after: reply) {
        return continueInTask { () throws(Problem) in
          let action = await decide(afterAsking: reply, to: request, of: call)
          try await carryOut(action, after: request, of: call)
        }
      }
      let action = decide(on: reply, to: request, of: call)
      if respond(by: action, from: .store) { return finish() }
      continueInTask { () throws(Problem) in try await carryOut(action, after: request, of: call) }
    }
  }

  /// Claims in a task that has waited for the body.
  @inline(never)
  private func claimInTask(_ call: KeyedCall) async throws(Problem) {
    try enterQuota(of: call)
    try await carryOut(nil, after: newClaimRequest(of: call, owner: worker.newOwner()), of: call)
  }

  /// Responds if the record has an outcome to replay, or the request is refused. Returns false if a task has to
  /// continue, also for `outcome_unknown`, whose cause the store has to be queried for.
  ///
  /// Another payload needs no explanation here: a route that explains mismatches gets `otherRecipe` first.
  private func respond(by action: ClaimLifecycle.ClaimedAction, from source: ReplaySource) -> Bool {
    switch action {
    case .replay(let record): replay(record, from: source)
    case .refuse(let problem) where problem.code != .outcomeUnknown: refuse(refusedAsDuplicate(problem))
    default: return false
    }
    return true
  }

  /// Carries out the action after a claim.
  ///
  /// - Parameter first: The action after the first claim; `nil` if nothing was claimed yet.
  private func carryOut(
    _ first: ClaimLifecycle.ClaimedAction?, after request: ClaimRequest, of call: KeyedCall
  ) async throws(Problem) {
    // Most claims are granted, and the run ends. Only the others need a frame for all actions.
    guard case .forward(let claim)? = first else {
      return try await carryOutAll(first, after: request, of: call)
    }
    guard try await run(call, owning: claim) == .done else {
      return try await carryOutAll(nil, after: request.changed(owner: worker.newOwner()), of: call)
    }
    call.retried?.end()
  }

  /// Carries out an action, and claims again as often as the actions demand.
  ///
  /// - Parameter first: The first action; `nil` if the store has to be queried for it.
  @inline(never)
  private func carryOutAll(
    _ first: ClaimLifecycle.ClaimedAction?, after request: ClaimRequest, of call: KeyedCall
  ) async throws(Problem) {
    var request = request
    var next = first
    var wait: DuplicateWait<Store>?
    defer {
      wait?.end()
      call.retried?.end()
    }
    while true {
      let (action, source) =
        if let next { (next, ReplaySource.store) } else {
          try await nextAction(request, of: call, hasWaited: wait != nil)
        }
      next = nil
      switch action {
      case .forward(let claim):
        wait?.end()
        wait = nil
        guard try await run(call, owning: claim) == .claimAgain else { return }
        request = request.changed(owner: worker.newOwner())
      case .replay(let record): return replay(record, from: wait == nil ? source : .wait)
      case .compare(let recipe):
        request = request.changed(fingerprint: await fingerprint(of: call, by: recipe))
      case .probe(let attempt, let age):
        next = try await reconcile(request, of: call, after: attempt, age: age)
      case .adopt(let claim, let completion): next = await adopt(completion, with: claim, of: call)
      case .wait(let leaseLeft):
        try await waitForChange(&wait, for: call, leaseLeft)
        guard delivery.isConnected else { return }
      case .claimAgain: request = request.changed(owner: worker.newOwner())
      case .undo(let unused, let problem):
        await worker.undo(unused)
        throw await refusal(problem, of: call, request)
      case .refuse(let problem): throw await refusal(problem, of: call, request)
      case .forwardUnprotected(let unused):
        return try await PassThrough(runner: self, label: .unprotected)
          .run(call, without: request, unused: unused)
      }
    }
  }

  /// Returns the problem that a refused client gets.
  @inline(never)
  private func refusal(_ problem: Problem, of call: KeyedCall, _ request: ClaimRequest) async -> Problem {
    if problem.code == .payloadMismatch {
      countMismatch(of: call)
      await explain(request, of: call)
    }
    return refusedAsDuplicate(await noteReturn(toLossBehind: problem, of: call))
  }

  /// Returns the next action and its source: an outcome that this process knows for certain, or else the store's reply
  /// to a claim.
  ///
  /// - Parameter hasWaited: Whether the delivery has waited as a duplicate. It then reserves room for a response only
  ///   once it is the owner; any other that may still run reserves it before the store is queried.
  @inline(never)
  private func nextAction(
    _ request: ClaimRequest, of call: KeyedCall, hasWaited: Bool
  ) async throws(Problem) -> (ClaimLifecycle.ClaimedAction, ReplaySource) {
    if let known = knownAction(of: call, request.fingerprint) { return (known, .cache) }
    if !hasWaited { try reserveCapture(call) }
    return (await claim(request, of: call), .store)
  }

  /// Runs the request as the record's owner.
  @inline(never)
  private func run(
    _ call: KeyedCall, owning claim: Claim
  ) async throws(Problem) -> OwnedRun<Store, Backend>.End {
    do throws(Problem) { try admit(claim, of: call) } catch {
      await worker.undo(.givenBack(claim, by: call.route.policy))
      throw error
    }
    if call.route.policy.retries != nil, call.retried == nil {
      call.retried = RetriedCall(of: environment.retries.budget(of: call.route.policy.upstream.name))
    }
    return await OwnedRun.run(call, owning: claim, by: self)
  }

  /// The fingerprint by the recipe of a record that another configuration has made.
  @inline(never)
  func fingerprint(of call: KeyedCall, by recipe: Recipe) async -> Fingerprint {
    let head = head
    let bytes = call.readBytes(by: recipe, head: head)
    guard worker.bodies.mayReadOnLoop(bytes) else {
      return await worker.bodies.read(bytes, of: delivery.connection) {
        call.fingerprint(by: recipe, head: head)
      }
    }
    return call.fingerprint(by: recipe, head: head)
  }

  /// Subscribes to the record's ends at the first call, and waits until the record may have changed at each later one.
  /// Throws if the delivery may not wait, or has waited long enough.
  ///
  /// The claim after the first call finds an end that came before the subscription.
  @inline(never)
  private func waitForChange(
    _ wait: inout DuplicateWait<Store>?, for call: KeyedCall, _ leaseLeft: Milliseconds
  ) async throws(Problem) {
    // Only an owner needs room for a response, and many duplicates may wait.
    delivery.memory.releaseCapture()
    let mayContinue: Bool
    if let wait {
      mayContinue = await wait.changed(leaseLeft: leaseLeft)
    } else {
      do throws(Problem) { wait = try await DuplicateWait(for: call, of: self) } catch {
        throw refusedAsDuplicate(error)
      }
      mayContinue = wait != nil
    }
    guard mayContinue else { throw refusedAsDuplicate(call.lifecycle.gaveUpWaiting()) }
  }

  /// Returns a refusal because of the record's state, and notes whether another delivery of the key caused it. None did
  /// if the store has reported no state.
  func refusedAsDuplicate(_ problem: Problem) -> Problem {
    delivery.logEntry.isDuplicateRefused =
      ![.storeUnavailable, .storeUnreadable, .overloaded].contains(problem.code)
    return problem
  }

  /// Claims the record, and decides on the reply.
  func claim(_ request: ClaimRequest, of call: KeyedCall) async -> ClaimLifecycle.ClaimedAction {
    if let reply = worker.unstoredReply(to: request.id, request.fingerprint) {
      return decide(on: reply, to: request, of: call)
    }
    let requestedAt = noteClaimSent()
    let reply: ClaimReply
    do throws(StoreError) {
      reply = .success(try await worker.store.claim(request))
    } catch {
      reply = .failure(error)
    }
    noteClaimReply(requestedAt)
    return await decide(afterAsking: reply, to: request, of: call)
  }

  func newClaimRequest(of call: KeyedCall, owner: OwnerToken) -> ClaimRequest {
    delivery.caller = call.caller
    return call.claimRequest(
      owner: owner, isSealed: environment.sealsResponses, attribution: attribution(of: call),
      reader: delivery)
  }

  /// The action for what this process knows for certain: an outcome that the store has or is given, or another payload
  /// beside a run without a record; `nil` if the store has to be queried.
  @inline(never)
  private func knownAction(of call: KeyedCall, _ fingerprint: Fingerprint) -> ClaimLifecycle.ClaimedAction? {
    guard let reply = worker.knownReply(to: call.id, fingerprint) else {
      guard worker.knowsRecords(of: call.route, call.id, for: delivery) else { return nil }
      return environment.known.change(call.id) { known, _ in
        known.flatMap { call.lifecycle.refused(beside: $0, fingerprint) }
      }
    }
    return decide(
      on: reply,
      to: call.claimRequest(
        owner: OwnerToken(high: 0, low: 0), isSealed: environment.sealsResponses), of: call)
  }

  /// The action that follows from the store's reply and, on a route that may run requests without the store, from this
  /// process's knowledge of the record.
  @inline(never)
  func decide(
    on reply: ClaimReply, to request: @autoclosure () -> ClaimRequest, of call: KeyedCall,
    isDown: Bool = false
  ) -> ClaimLifecycle.ClaimedAction {
    if let action = worker.declined(reply, of: call) { return action }
    if worker.knowsRecords(of: call.route, call.id, for: delivery) {
      let request = request()
      return environment.known.change(request.id) {
        call.lifecycle.replied(reply, to: request, isDown: isDown, known: &$0, now: $1)
      }
    }
    switch reply {
    case .success(let outcome): return call.lifecycle.claimed(outcome)
    case .failure(let error): return call.lifecycle.claimFailed(error, of: request(), isDown: isDown)
    }
  }
}
