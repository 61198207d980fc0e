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
      runner.noteBackendTime(since: forwardedAt)
      await record(sending, head, body)
    } catch {
      runner.noteBackendTime(since: forwardedAt)
      sending.awaited = await lose(indices, after: error)
      if !sending.awaited.isEmpty { return sending }
    }
    sending.exchange.close()
    return nil
  }

  private func lease(of index: Int) -> LeaseKeeper<Store> {
    guard let lease = leases[index] else {
      preconditionFailure("BatchRun: an item is sent or recorded without a claim")
    }
    return lease
  }

  private func ownedRecord(_ index: Int) -> OwnedRecord<Store, Backend> {
    OwnedRecord(call: batch.calls[index], lease: lease(of: index), runner: runner)
  }

  /// Forward: the one request that all these claims permit together.
  private func begin(_ indices: [Int]) -> Sending {
    let (policy, leases) = (batch.route.policy, indices.map(lease(of:)))
    delivery.logEntry.attempt = leases.map(\.claim.attempt).max()
    let exchange = worker.backend.begin(
      UpstreamRequest(
        upstream: policy.upstream, method: runner.head.methodText, target: batch.target.text,
        fields: UpstreamFields.make(
          for: delivery, batch.target, to: policy.upstream, id: nil, contentCoding: policy.contentCoding),
        body: .whole(batch.request.body(of: indices.map { batch.items[$0] })),
        permit: SendPermit(all: leases.map(\.permit)), memory: delivery,
        bindsConnection: runner.head.bindsConnection))
    return Sending(
      indices: indices, isBesideUnknown: leases.contains(where: \.claim.followsUnknown), exchange: exchange,
      capture: ResponseCapture(
        of: exchange, call: batch.calls[indices[0]], claim: leases[0].claim, delivery: delivery))
  }

  /// Record: the store has each item's outcome before the client has the response.
  private func record(_ sending: Sending, _ head: UpstreamHead, _ body: ByteBuffer?) async {
    let (indices, isBesideUnknown) = (sending.indices, sending.isBesideUnknown)
    let recordedAt = runner.noteRecording()
    let results = await results(of: indices, head, body)
    if let results {
      noteSplit(results, status: head.head.status)
    } else if let body, indices.count == batch.calls.count {
      unsplit = BackendResponse(head: head, body: body, trailers: ByteBuffer())
    }
    let shared = body.flatMap { sharedOutcome(head, $0, of: indices.count) }
    await withTaskGroup(of: (Int, ItemEnd).self) { group in
      for (place, index) in indices.enumerated() {
        group.addTask { [self] in
          (index, await record(index, head, results?.results[place], or: shared, isBesideUnknown))
        }
      }
      for await (index, itemEnd) in group { await end(index, by: itemEnd) }
    }
    keepResults(body?.readableBytes ?? 0)
    runner.noteRecordTime(since: recordedAt)
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

  private func end(_ index: Int, by itemEnd: ItemEnd) async {
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
  /// - Parameters:
  ///   - result: Its result; `nil` if the response has none.
  ///   - shared: The outcome of all items together, without results.
  ///   - isBesideUnknown: Whether one of the items follows an unknown outcome, which the response may be about.
  private func record(
    _ index: Int, _ head: UpstreamHead, _ result: ByteBuffer?, or shared: Outcome?, _ isBesideUnknown: Bool
  ) async -> ItemEnd {
    let (owned, status) = (ownedRecord(index), head.head.status)
    guard let outcome = result.map({ self.outcome(head.head, $0) }) ?? shared else {
      return await loseUnsplit(owned)
    }
    if result != nil { note(OriginAllowance(head.head)) }
    let action: ClaimLifecycle.StoredAction
    let outcomeClass: OutcomeClass
    let exchange = CompletedExchange(
      status: status, steering: Steering(of: head.head), isRenewed: owned.lease.hasRequestedRenewal,
      isBesideUnknown: isBesideUnknown)
    switch owned.call.lifecycle.responded(exchange) {
    case .complete(let retention, let remember):
      outcomeClass = .final
      action = await owned.complete(
        Completion(outcome: outcome, retention: retention, remember: remember))
      owned.countLastAttempt(head.head, after: action)
    case .completeAsDeleted: preconditionFailure("BatchRun: a profile's response on a route with batch")
    case .release(let release):
      outcomeClass = .retry
      action = await owned.release(release)
    case .markUnknown:
      outcomeClass = .unknown
      action = await owned.markUnknown(byStatus: status)
    }
    let unsplit = BatchElement.unsplit(
      status: status, outcomeClass, retryAfter: batch.route.policy.retryAfterLoss(age: 0))
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
      preconditionFailure("BatchRun: a lost response leaves its record unknown")
    }
    return itemEnd(after: await owned.markUnknown(after: failure, cause: .results), .refused(problem))
  }
}

// The ends without a response in time.
extension BatchRun {
  /// Ends the items after an exchange without a complete response. Returns those whose response may still come.
  private func lose(_ indices: [Int], after failure: UpstreamFailure) async -> Set<Int> {
    var awaited: Set<Int> = []
    await withTaskGroup(of: (Int, ItemEnd).self) { group in
      for index in indices { group.addTask { [self] in (index, await lose(index, after: failure)) } }
      for await (index, itemEnd) in group {
        if case .awaited = itemEnd { awaited.insert(index) }
        await end(index, by: itemEnd)
      }
    }
    return awaited
  }

  private func lose(_ index: Int, after failure: UpstreamFailure) async -> ItemEnd {
    let (call, owned) = (batch.calls[index], ownedRecord(index))
    switch call.lifecycle.failed(failure) {
    case .release(let problem):
      return itemEnd(after: await owned.release(.remembered), .refused(problem))
    case .markUnknown(let problem):
      return itemEnd(after: await owned.markUnknown(after: failure), .refused(problem))
    case .listen(_, let problem):
      if let action = await owned.markUnknownAfterTimeout() {
        return itemEnd(after: action, .refused(problem))
      }
      return .awaited(.refused(problem))
    case .giveUp: preconditionFailure("BatchRun: an item is given up before its time-out")
    }
  }

  /// Listens for a late response after the time-out, for which the client was refused. It counts as one in time, unless
  /// it is a success without certain results.
  @inline(never)
  func listen(to sending: Sending) async {
    defer { sending.exchange.close() }
    do throws(UpstreamFailure) {
      let body = try await sending.capture.collect(within: batch.route.policy.upstream.settle)
      let head = try await sending.exchange.head(within: nil)
      let results = await results(of: sending.indices, head, body)
      let shared = body.flatMap { sharedOutcome(head, $0, of: sending.indices.count) }
      guard results != nil || shared != nil else {
        throw .responseLost("a late response has no certain result for each item")
      }
      await recordLate(sending, head, results, or: shared)
    } catch {
      for index in sending.awaited { giveUpListening(to: index, after: error) }
    }
  }

  private func recordLate(
    _ sending: Sending, _ head: UpstreamHead, _ results: BatchResults?, or shared: Outcome?
  ) async {
    let isBesideUnknown = sending.isBesideUnknown
    await withTaskGroup(of: Void.self) { group in
      for (place, index) in sending.indices.enumerated() where sending.awaited.contains(index) {
        group.addTask { [self] in
          _ = await record(index, head, results?.results[place], or: shared, isBesideUnknown)
          worker.metrics.add(.lateResponses, route: batch.route.number)
        }
      }
    }
  }

  private func giveUpListening(to index: Int, after failure: UpstreamFailure) {
    _ = batch.calls[index].lifecycle.failed(failure)
    worker.endLease(ownedRecord(index).lease)
  }
}
