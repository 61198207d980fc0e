import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

// The part of a batch that it owns: sent as one request, and recorded item by item.
extension BatchRun {
  /// The request with the items that the batch owns.
  struct Sending {
    /// The items, in the request's order.
    let indices: [Int]
    /// Whether the outcome of an earlier attempt of one of them was lost, which the response may be about.
    let isBesideUnknown: Bool
    let exchange: Backend.Exchange
    let capture: ResponseCapture<Backend.Exchange>
    /// The items whose response may still come after the time-out. The others' records belong to other deliveries.
    var awaited: Set<Int> = []
  }

  /// Sends the items that the batch owns, and records each one's outcome.
  ///
  /// - Returns: The request, if a response may still come after the time-out.
  @inline(never)
  func send(_ indices: [Int]) async -> Sending? {
    let forwardedAt = runner.noteForwarded()
    var sending = begin(indices)
    do throws(UpstreamFailure) {
      let body = try await sending.capture.collect(within: batch.route.policy.timeToResponse)
      let head = try await sending.exchange.head(within: nil)
      await record(sending, head, body, at: runner.noteBackendTime(since: forwardedAt))
    } catch {
      _ = runner.noteBackendTime(since: forwardedAt)
      sending.awaited = await lose(indices, by: Loss(of: sending, after: error))
      if !sending.awaited.isEmpty { return sending }
    }
    sending.exchange.close()
    return nil
  }

  private func ownedRecord(_ index: Int) -> OwnedRecord<Store, Backend> {
    guard let record = owned[index] else {
      invariantBroken("an item is sent or recorded without a claim")
    }
    return record
  }

  /// Forward: the one request that all these claims permit together.
  private func begin(_ indices: [Int]) -> Sending {
    let (policy, records) = (batch.route.policy, indices.map(ownedRecord))
    delivery.logEntry.attempt = records.map(\.claim.attempt).max()
    let exchange = worker.backend.begin(
      UpstreamRequest(
        upstream: policy.upstream, method: runner.head.methodText, target: batch.target.text,
        fields: UpstreamFields.make(
          for: delivery, batch.target, to: policy.upstream, id: nil, contentCoding: policy.contentCoding),
        body: .whole(batch.request.body(of: indices.map { batch.items[$0] })),
        permit: SendPermit(all: records.map(\.permit)), memory: delivery,
        bindsConnection: runner.head.bindsConnection, caller: delivery.quotaCaller))
    return Sending(
      indices: indices, isBesideUnknown: records.contains(where: \.claim.followsUnknown), exchange: exchange,
      capture: ResponseCapture(
        of: exchange, call: batch.calls[indices[0]], claim: records[0].claim, delivery: delivery))
  }

  /// Record: the store has each item's outcome before the client has the response.
  private func record(
    _ sending: Sending, _ head: UpstreamHead, _ body: ByteBuffer?, at recordedAt: NIODeadline
  ) async {
    let indices = sending.indices
    runner.noteRecording(at: recordedAt)
    let results = await results(of: indices, head, body)
    if let results {
      invariant(results.results.count == indices.count, "a batch has other results than items")
      noteSplit(results, status: head.head.status)
    } else if let body, indices.count == batch.calls.count {
      unsplit = BackendResponse(head: head, body: body, trailers: ByteBuffer())
    }
    let reply = await reply(head, body, to: sending)
    await endEach(indices) { [self] in
      await record(indices[$0], results?.results[$0], of: reply)
    } then: {
      await end($0, by: $1)
    }
    keepResults(body?.readableBytes ?? 0)
    runner.noteRecordTime(since: recordedAt)
  }

  /// The backend's response, as it is about each item.
  private struct Reply {
    let head: MessageHead
    let steering: Steering
    let isDelimitedByClose: Bool
    /// The outcome of all items together, without results; `nil` if there is none.
    let shared: Outcome?
    /// Whether one of the items follows an unknown outcome, which the response may be about.
    let isBesideUnknown: Bool
  }

  private func reply(_ head: UpstreamHead, _ body: ByteBuffer?, to sending: Sending) async -> Reply {
    let (message, route) = (head.head, batch.route)
    let isRead = route.policy.outcomes.rules?.readsBody(of: message) ?? false
    let steering = await readJSON(isRead ? body?.readableBytes ?? 0 : 0) {
      Steering(of: message, body: body, mayBeCut: head.isDelimitedByClose, by: route.policy)
    }
    return Reply(
      head: message, steering: steering,
      isDelimitedByClose: head.isDelimitedByClose,
      shared: body.flatMap { sharedOutcome(head, $0, of: sending.indices.count) },
      isBesideUnknown: sending.isBesideUnknown)
  }

  /// The end of one item that was sent.
  private enum ItemEnd: Sendable {
    case element(BatchElement)
    /// Another owner's outcome is the one that counts.
    case recorded(CompletedRecord)
    /// Another owner is in progress: the record is claimed again.
    case claimAgain
    /// As `element`, and a late response may still come.
    case awaited(BatchElement)
  }

  /// Ends the records of `count` items, some at once, and calls `ended` with each one's place and end. All of them wait
  /// together for a store that is away.
  private func endEach(
    _ indices: [Int], by work: @escaping @Sendable (_ place: Int) async -> ItemEnd,
    then ended: (_ index: Int, ItemEnd) async -> Void
  ) async {
    await withTaskGroup(of: (Int, ItemEnd).self) { group in
      var (begun, limit) = (0, Self.maxUnderWay)
      while true {
        let next = min(limit, indices.count)
        for place in begun..<next { group.addTask { (place, await work(place)) } }
        begun = next
        guard let (place, itemEnd) = await group.next() else { return }
        let index = indices[place]
        limit = ownedRecord(index).run.isUnanswered ? indices.count : limit + 1
        await ended(index, itemEnd)
      }
    }
  }

  private func end(_ index: Int, by itemEnd: ItemEnd) async {
    if case .awaited(let element) = itemEnd { return end(index, element) }
    ownedRecord(index).checkEnd()
    switch itemEnd {
    case .element(let element), .awaited(let element): end(index, element)
    case .recorded(let record): end(index, await element(of: record))
    case .claimAgain: claimAgain(index)
    }
  }

  /// The results in the backend's response, one for each item that was sent; `nil` if it has none, or it is not certain
  /// which result is which item's.
  private func results(
    of indices: [Int], _ head: UpstreamHead, _ body: ByteBuffer?
  ) async -> BatchResults? {
    guard let body, 200..<300 ~= head.head.status, !head.head.hasContentCoding, !head.isDelimitedByClose
    else {
      return nil
    }
    let (keys, policy) = (indices.map { batch.calls[$0].key }, batch.policy)
    return await readJSON(body.readableBytes) { BatchResults(body, keys: keys, policy: policy) }
  }

  /// The outcome of items that the backend has refused together; `nil` if the response says nothing of any one of them.
  ///
  /// Copies of a large body would overrun the store, so that each has the body only if all are as small as a response.
  private func sharedOutcome(_ head: UpstreamHead, _ body: ByteBuffer, of count: Int) -> Outcome? {
    guard !(200..<300 ~= head.head.status) else { return nil }
    let outcome = BackendResponse(head: head, body: body, trailers: ByteBuffer())
      .outcome(by: batch.route, method: runner.head.method)
    let isSmall = body.readableBytes <= batch.route.policy.maxResponseBody / count
    return isSmall ? outcome : outcome.withoutResponse
  }

  /// Records one item's outcome.
  ///
  /// - Parameter result: Its result; `nil` if the response has none.
  private func record(_ index: Int, _ result: ByteBuffer?, of reply: Reply) async -> ItemEnd {
    let (owned, status) = (ownedRecord(index), reply.head.status)
    guard let outcome = result.map({ self.outcome(reply.head, $0) }) ?? reply.shared else {
      return await loseUnsplit(owned)
    }
    if result != nil { note(OriginAllowance(reply.head)) }
    let action: ClaimLifecycle.StoredAction
    let outcomeClass: OutcomeClass
    let exchange = CompletedExchange(
      status: status, steering: reply.steering, isBesideUnknown: reply.isBesideUnknown)
    invariant(owned.permit.isSent, "a response to an item that was never sent")
    switch owned.call.lifecycle.responded(exchange) {
    case .complete(let retention, let remember):
      outcomeClass = .final
      if case .statusOnly = outcome {
        owned.noteUnkept(reply.isDelimitedByClose ? .noLength : .tooLarge)
      }
      owned.noteForbiddenStoring(of: reply.head)
      action = await owned.complete(
        Completion(outcome: outcome, retention: retention, remember: remember))
      owned.countLastAttempt(status, reply.steering, after: action)
    case .completeAsDeleted: invariantBroken("a profile's response on a route with batch")
    case .release(let release):
      outcomeClass = .retry
      action = await owned.release(release)
    case .markUnknown:
      outcomeClass = .unknown
      action = await owned.markUnknown(byStatus: status)
    }
    let unsplit = BatchElement.unsplit(
      status: status, outcomeClass, retryAfter: batch.route.policy.retryAfterLoss(age: 0, isOver: true))
    return itemEnd(after: action, result.map(BatchElement.executed) ?? unsplit)
  }

  /// The outcome of one item, with the backend's permission for pages to read it.
  private func outcome(_ head: MessageHead, _ result: ByteBuffer) -> Outcome {
    var fields = ByteBuffer(string: "Content-Type: application/json\r\n")
    if batch.route.policy.cors != nil { OriginAllowance(head)?.write(into: &fields) }
    return .whole(RecordedResponse(status: head.status, fields: fields, body: result))
  }

  /// The item's end after the store's reply.
  private func itemEnd(
    after action: ClaimLifecycle.StoredAction, _ own: @autoclosure () -> BatchElement
  ) -> ItemEnd {
    switch action {
    case .respond, .respondAndKeepStoring: .element(own())
    case .refuseAndKeepStoring(let problem), .refuse(let problem): .element(.refused(problem))
    case .replay(let record): .recorded(record)
    case .becomeDuplicate, .retry: .claimAgain
    }
  }

  /// Marks an item's record unknown because nothing in the response is certainly its result.
  private func loseUnsplit(_ owned: OwnedRecord<Store, Backend>) async -> ItemEnd {
    let failure = UpstreamFailure.responseLost("the response has no certain result for each item")
    guard case .markUnknown(let problem) = owned.call.lifecycle.failed(failure) else {
      invariantBroken("a lost response leaves its record unknown")
    }
    return itemEnd(after: await owned.markUnknown(after: failure, cause: .results), .refused(problem))
  }
}

// The ends without a response in time.
extension BatchRun {
  /// Ends the items after an exchange without a complete response. Returns those whose response may still come.
  private func lose(_ indices: [Int], by loss: Loss) async -> Set<Int> {
    if case .malformed = loss.failure { delivery.logEntry.loss = .malformed }
    var awaited: Set<Int> = []
    await endEach(indices) { [self] in
      await lose(indices[$0], by: loss)
    } then: { index, itemEnd in
      if case .awaited = itemEnd { awaited.insert(index) }
      await end(index, by: itemEnd)
    }
    return awaited
  }

  /// The end of an exchange without a complete response.
  private struct Loss: Sendable {
    let failure: UpstreamFailure
    /// The head of a response whose body is malformed.
    let head: MessageHead?
    let isBesideUnknown: Bool

    /// A success without certain results is lost, whatever it lacks: some of the items may have failed.
    init(of sending: Sending, after failure: UpstreamFailure) {
      if case .malformed(200..<300, let rule) = failure {
        self.failure = .responseLost(rule)
      } else {
        self.failure = failure
      }
      head = sending.exchange.readyHead?.head
      isBesideUnknown = sending.isBesideUnknown
    }
  }

  private func lose(_ index: Int, by loss: Loss) async -> ItemEnd {
    let (call, owned) = (batch.calls[index], ownedRecord(index))
    switch call.lifecycle.failed(loss.failure, after: loss.head, isBesideUnknown: loss.isBesideUnknown) {
    case .release(let release, let problem):
      return itemEnd(after: await owned.release(release), .refused(problem))
    case .complete(let completion, let problem):
      return itemEnd(after: await owned.complete(completion), .refused(problem))
    case .markUnknown(let problem):
      return itemEnd(after: await owned.markUnknown(after: loss.failure), .refused(problem))
    case .listen(_, let problem):
      if let action = await owned.markUnknownAfterTimeout() {
        return itemEnd(after: action, .refused(problem))
      }
      return .awaited(.refused(problem))
    case .giveUp: invariantBroken("an item is given up before its time-out")
    }
  }

  /// Listens for a late response after the time-out, for which the client was refused. It counts as one in time, unless
  /// it is a success without certain results.
  @inline(never)
  func listen(to sending: Sending) async {
    defer {
      sending.exchange.close()
      for index in sending.awaited { ownedRecord(index).checkEnd() }
    }
    do throws(UpstreamFailure) {
      let body = try await sending.capture.collect(within: batch.route.policy.upstream.settle)
      let head = try await sending.exchange.head(within: nil)
      let results = await results(of: sending.indices, head, body)
      let reply = await reply(head, body, to: sending)
      guard results != nil || reply.shared != nil else {
        throw .responseLost("a late response has no certain result for each item")
      }
      await record(late: reply, to: sending, results)
    } catch {
      let loss = Loss(of: sending, after: error)
      for index in sending.awaited {
        if case .malformed = loss.failure {
          _ = await lose(index, by: loss)
        } else {
          giveUpListening(to: index, after: loss.failure)
        }
      }
    }
  }

  private func record(late reply: Reply, to sending: Sending, _ results: BatchResults?) async {
    let awaited = zip(sending.indices, sending.indices.indices).filter { sending.awaited.contains($0.0) }
    await endEach(awaited.map(\.0)) { [self] in
      await record(awaited[$0].0, results?.results[awaited[$0].1], of: reply)
    } then: { _, _ in
      worker.metrics.add(.lateResponses, route: batch.route.number)
    }
  }

  private func giveUpListening(to index: Int, after failure: UpstreamFailure) {
    _ = batch.calls[index].lifecycle.failed(failure)
    ownedRecord(index).giveUp()
  }
}
