import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

/// The run of a batch, from top to bottom: claim, send what is not recorded yet as one smaller batch, record, wait for
/// what others run, respond.
///
/// `BatchLifecycle` decides what follows what, and `ClaimLifecycle` on each item. Its task and that one's child tasks
/// run on the executor of one event loop, which the children inherit; hence `@unchecked Sendable`.
final class BatchRun<Store: RecordStore, Backend: Upstream>: @unchecked Sendable {
  let runner: RequestRunner<Store, Backend>
  let batch: BatchCall
  var lifecycle: BatchLifecycle
  /// The present claim of each of the batch's calls.
  private var requests: [ClaimRequest]
  var owned: [OwnedRecord<Store, Backend>?]
  private var elements: [BatchElement?]
  /// The size of the recorded results so far, in bytes.
  private var recordedBytes = 0
  /// The first recorded outcome that is no success.
  private var failure: CompletedRecord?
  /// The backend's last response that was split, and its status.
  private var split: (results: BatchResults, status: Int)?
  /// The backend's response to all items, if it was not split.
  var unsplit: BackendResponse?
  /// Whether results are counted as captured still, since no other memory was left for them.
  private var keepsCapture = false
  /// The permissions for pages to read the results so far; `nil` stands for results that no page may read.
  private var allowances: Set<OriginAllowance?> = []
  /// The maximum number of items whose commands are under way at once. It bounds the recorded responses that come before
  /// they are counted, and the commands behind which those of others wait.
  static var maxUnderWay: Int { 32 }
  /// The items' fingerprints by another configuration's recipe.
  private var otherPrints: (recipe: Recipe, prints: [Fingerprint])?
  /// The wait for one item's record, and the end of the time for all waits.
  private var wait: (index: Int, watch: DuplicateWait<Store>)?
  private var waitsUntil: NIODeadline?

  var worker: Worker<Store, Backend> { runner.worker }
  var delivery: Delivery { runner.delivery }

  init(_ batch: BatchCall, by runner: RequestRunner<Store, Backend>) {
    self.runner = runner
    self.batch = batch
    lifecycle = BatchLifecycle(batch.calls.map(\.id))
    requests = batch.calls.map { runner.newClaimRequest(of: $0, owner: runner.worker.newOwner()) }
    owned = Array(repeating: nil, count: batch.calls.count)
    elements = Array(repeating: nil, count: batch.calls.count)
  }

  func run() async throws(Problem) {
    try runner.enterQuota(of: batch.calls[0])
    try runner.enterQuota(ofItems: batch.calls.count)
    defer { endWait() }
    while true {
      switch lifecycle.next {
      case .claim(let indices):
        await claim(Array(indices.prefix(Self.maxUnderWay)))
        // Claims that the cache replies to suspend nobody, and the loop has others.
        if indices.count > Self.maxUnderWay { await worker.context.yield() }
      case .send(let indices):
        endWait()
        guard let sending = await send(indices) else { continue }
        giveUpWaiting()
        respond()
        runner.report()
        return await listen(to: sending)
      case .wait(let indices, let leaseLeft):
        await waitForChange(of: indices, leaseLeft)
        guard delivery.isConnected else { return }
      case .respond: return respond()
      }
    }
  }

  /// Ends an item.
  func end(_ index: Int, _ element: BatchElement) {
    elements[index] = element
    lifecycle.ended(index)
  }

  /// Prepares another claim of an item, by a new owner.
  func claimAgain(_ index: Int) {
    owned[index] = nil
    requests[index] = requests[index].changed(owner: worker.newOwner())
    lifecycle.superseded(index)
  }

  /// Counts the results of a send beside what a further one captures, unless the batch is over.
  func keepResults(_ bytes: Int) {
    if case .respond = lifecycle.next { return }
    if delivery.memory.takeBesides(bytes) { delivery.memory.releaseCapture() } else { keepsCapture = true }
  }

  func noteSplit(_ results: BatchResults, status: Int) { split = (results, status) }

  /// Notes the permission for pages to read a result, on a route with `cors`.
  func note(_ allowance: @autoclosure () -> OriginAllowance?) {
    if batch.route.policy.cors != nil { allowances.insert(allowance()) }
  }
}

// Claims.
extension BatchRun {
  /// Claims records in the given order, without waiting for one reply before the next claim.
  @inline(never)
  private func claim(_ indices: [Int]) async {
    // After a wait, only a batch that owns an item needs room for a response.
    if waitsUntil == nil {
      do throws(Problem) {
        try runner.reserveCapture(batch.calls[0])
      } catch {
        return indices.forEach { giveUp($0, error) }
      }
    }
    let requestedAt = runner.noteClaimSent()
    let replies = await replies(to: indices)
    runner.noteClaimReply(requestedAt)
    let actions = zip(indices, replies).map { index, reply in (index, action(after: reply, about: index)) }
    // A granted claim has its keeper at once, and not behind what other replies lead to.
    for case (let index, .forward(let claim)) in actions { await own(index, claim) }
    await withTaskGroup(of: Void.self) { group in
      for case (let index, .refuse(let problem)) in actions {
        group.addTask { [self] in await refuse(index, problem) }
      }
    }
    for (index, action) in actions {
      switch action {
      case .forward, .refuse: break
      default: await carryOut(action, about: index)
      }
    }
    // While the store is away, each further part of the batch would last until the time-out of one more call.
    if replies.allSatisfy(\.isStoreAway) { giveUpClaims() }
  }

  /// Refuses the items that are not claimed yet.
  private func giveUpClaims() {
    guard case .claim(let indices) = lifecycle.next else { return }
    for index in indices { giveUp(index, .storeUnavailable()) }
  }

  private func replies(to indices: [Int]) async -> [ClaimReply] {
    await withUnsafeContinuation { continuation in
      let gathering = ReplyGathering(count: indices.count, on: worker.context.loop) {
        continuation.resume(returning: $0)
      }
      for (place, index) in indices.enumerated() {
        let request = requests[index]
        if let known = worker.knownReply(to: request.id, request.fingerprint) {
          gathering.put(known, at: place)
        } else {
          worker.store.startClaim(request) { gathering.put($0, at: place) }
        }
      }
    }
  }

  private func action(after reply: ClaimReply, about index: Int) -> ClaimLifecycle.ClaimedAction {
    let call = batch.calls[index]
    if let action = worker.declined(reply, of: call) { return action }
    switch reply {
    case .success(let outcome): return call.lifecycle.claimed(outcome)
    case .failure(let error): return call.lifecycle.claimFailed(error, of: requests[index], isDown: false)
    }
  }

  /// Refuses an item, maybe because of a lost outcome, whose cause is read.
  private func refuse(_ index: Int, _ problem: Problem) async {
    end(index, .refused(await runner.noteReturn(toLossBehind: problem, of: batch.calls[index])))
  }

  private func carryOut(_ action: ClaimLifecycle.ClaimedAction, about index: Int) async {
    switch action {
    case .forward(let claim): await own(index, claim)
    case .replay(let record): end(index, await element(of: record))
    case .wait(let leaseLeft): lifecycle.held(index, leaseLeft: leaseLeft)
    case .claimAgain: lifecycle.held(index, leaseLeft: 0)
    case .compare(let recipe):
      requests[index] = requests[index].changed(fingerprint: await fingerprint(of: index, by: recipe))
    case .refuse(let problem): await refuse(index, problem)
    case .undo(let unused, let problem):
      await worker.undo(unused)
      end(index, .refused(problem))
    case .adopt(let claim, let completion):
      await carryOut(
        await runner.adopt(completion, with: claim, of: batch.calls[index]), about: index)
    case .probe, .forwardUnprotected:
      invariantBroken("a step that no route with batch takes")
    }
  }

  /// The element of a recorded outcome; a refusal if the results together exceed the limit of the response, or find no
  /// memory.
  func element(of record: CompletedRecord) async -> BatchElement {
    if !(200..<300 ~= record.outcome.status) {
      // Such an outcome becomes the response only if all items have it, so that one copy is enough.
      let first = failure ?? record
      failure = first
      let isSame = record.outcome == first.outcome
      return isSame
        ? .recorded(first) : .refused(.responseNotKept(status: record.outcome.status, location: nil))
    }
    recordedBytes += record.outcome.size
    guard recordedBytes <= batch.route.policy.maxResponseBody else {
      return .refused(.resultTooLarge(status: record.outcome.status))
    }
    guard delivery.memory.takeBesides(record.outcome.size) else { return .refused(.overloaded(.busy)) }
    if case .whole(let response) = record.outcome { note(OriginAllowance(recorded: response.fields)) }
    return await readJSON(record.outcome.size) { BatchElement(record) }
  }

  /// Runs work that reads `bytes` bytes of JSON: on the loop if they are few, otherwise on another thread.
  func readJSON<Reading: Sendable>(
    _ bytes: Int, _ work: @escaping @Sendable () -> Reading
  ) async -> Reading {
    guard !worker.bodies.mayReadOnLoop(bytes) else { return work() }
    return await worker.bodies.read(bytes, of: delivery.connection, work)
  }

  private func own(_ index: Int, _ claim: Claim) async {
    let call = batch.calls[index]
    invariant(claim.id == call.id && owned[index] == nil, "an item of a batch gets another claim")
    do throws(Problem) { try runner.admit(claim, of: call) } catch {
      await worker.undo(.givenBack(claim, by: batch.route.policy))
      return end(index, .refused(error))
    }
    owned[index] = worker.own(
      claim, of: call, for: delivery,
      firstRenewal: RecordRun.firstRenewal(of: claim.lease, at: index, among: batch.calls.count))
    lifecycle.granted(index)
  }

  /// The fingerprint of an item by another configuration's recipe. Those of all items are made at once, since each
  /// takes in what stands around the items.
  private func fingerprint(of index: Int, by recipe: Recipe) async -> Fingerprint {
    if let made = otherPrints, made.recipe == recipe { return made.prints[index] }
    let (request, head, target) = (batch.request, runner.head, batch.target)
    let (items, method) = (batch.items, batch.calls[index].method)
    let bytes = delivery.request.head.bytes.readableBytes + request.size
    let prints = await worker.bodies.read(bytes, of: delivery.connection) {
      request.fingerprints(of: items, by: recipe, head: head, method: method, target: target)
    }
    otherPrints = (recipe, prints)
    return prints[index]
  }
}

// The waits, during which the batch holds no claim.
extension BatchRun {
  /// Waits until the record of one item may have changed. All items that are waited for are then claimed again.
  @inline(never)
  private func waitForChange(of indices: [Int], _ leaseLeft: Milliseconds) async {
    // Only an owner needs room for a response, and many duplicates may wait.
    if !keepsCapture { delivery.memory.releaseCapture() }
    let span = batch.route.policy.maxWait(for: runner.head)
    let deadline = waitsUntil ?? .now() + .milliseconds(span.count)
    waitsUntil = deadline
    let left = Milliseconds(deadline - .now())
    guard left > 0 else { return giveUpWaiting() }
    if let wait, indices.contains(wait.index) {
      guard await wait.watch.changed(leaseLeft: min(leaseLeft, left)) else { return giveUpWaiting() }
      return lifecycle.changed()
    }
    endWait()
    let index = indices[0]
    do throws(Problem) {
      guard let watch = try await DuplicateWait(for: batch.calls[index], of: runner) else {
        return giveUpWaiting(for: index)
      }
      wait = (index, watch)
      // The claims that follow find an end that came before the subscription.
      lifecycle.changed()
    } catch {
      // Subscribing to another item's record would run into the same time-out.
      for index in indices { giveUp(index, error) }
    }
  }

  private func endWait() {
    wait?.watch.end()
    wait = nil
  }

  private func giveUp(_ index: Int, _ problem: Problem) {
    end(index, .refused(problem))
  }

  private func giveUpWaiting(for index: Int) {
    end(index, .refused(batch.calls[index].lifecycle.gaveUpWaiting()))
  }

  /// Ends all items that the batch does not own.
  private func giveUpWaiting() {
    while true {
      switch lifecycle.next {
      case .claim(let indices), .wait(let indices, _): indices.forEach(giveUpWaiting(for:))
      case .send, .respond: return
      }
    }
  }
}

// The response.
extension BatchRun {
  /// Respond: each item's outcome, in the request's order.
  @inline(never)
  private func respond() {
    guard delivery.responseState == .none else { return }
    let all = batch.places.map(element(at:))
    // The client's copy is counted from here on.
    delivery.memory.giveBesides()
    if let unsplit, case .unsplit(let status, let outcome, _) = all.first, all.allSatisfy({ $0 == all.first })
    {
      count(BatchElement.Counts(all))
      let label = ResponseLabel(outcome)
      unsplit.send(to: delivery, label: label)
      delivery.logEntry.outcome = RequestOutcome(label)
      delivery.logEntry.failure = FailureCategory(status: status)
      return
    }
    let response = BatchResponse(
      all, around: split?.results, status: split?.status, policy: batch.policy,
      limit: batch.route.policy.maxResponseBody)
    count(response.counts)
    switch response.content {
    case .refused(let problem): runner.refuse(runner.refusedAsDuplicate(problem))
    case .replayed(let record): runner.replay(record, from: .store)
    case .assembled(let status, let body): respond(status, body, response.counts)
    }
  }

  private func respond(_ status: Int, _ body: ByteBuffer, _ counts: BatchElement.Counts) {
    delivery.logEntry.status = status
    delivery.logEntry.outcome =
      counts.executed > 0 ? .executed : counts.replayed > 0 ? .replayed : .refused
    let response = OwnResponse(
      status: status,
      fields: [("Content-Type", "application/json"), ("Idempotency-Status", counts.label)], body: body,
      allowance: commonAllowance)
    delivery.respond(with: ClientResponse(response, to: runner.head.method))
  }

  /// The element of an item.
  ///
  /// - Parameter place: The item's call; `nil` for one that has an earlier item's key and another payload.
  private func element(at place: Int?) -> BatchElement {
    guard let place else {
      return .refused(.payloadMismatch(status: batch.route.policy.mismatchStatus))
    }
    guard let element = elements[place] else { invariantBroken("a response before each item has ended") }
    return element
  }

  /// The permission that all results have; `nil` if there is none: no page may read one result by another's.
  private var commonAllowance: OriginAllowance? {
    allowances.count == 1 ? allowances.first ?? nil : nil
  }

  private func count(_ items: BatchElement.Counts) {
    let route = batch.route.number
    worker.metrics.add(BatchItemEnd.executed, items.executed, route: route)
    worker.metrics.add(BatchItemEnd.replayed, items.replayed, route: route)
    worker.metrics.add(BatchItemEnd.refused, items.refused, route: route)
  }
}

extension BatchElement.Counts {
  /// The value of `Idempotency-Status`.
  fileprivate var label: String { "batch; executed=\(executed); replayed=\(replayed); refused=\(refused)" }
}

extension ClaimReply {
  /// Whether the store gave no reply, as opposed to a refusal.
  fileprivate var isStoreAway: Bool {
    switch self {
    case .failure(.unavailable), .failure(.fateUnknown): true
    case .success, .failure(.busy), .failure(.refused), .failure(.unreadable): false
    }
  }
}
