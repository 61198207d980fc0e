import Idempotency
import Loop
import NIOCore
import Telemetry
import Wire

/// The way of a request without a record: streamed both ways, never stored.
extension RequestRunner {
  /// Forwards the request, and gives the client the response as it comes.
  ///
  /// - Parameter id: of the record that it would have on a protected route, while the store is away.
  /// - Returns: the response's head; `nil` where the client went away before the response was whole.
  @discardableResult @inline(never)
  func passThrough(
    _ target: RequestTarget, by route: Route?, label: AnswerLabel?, id: RecordID? = nil
  ) async throws(Problem) -> MessageHead? {
    let sentAt = NIODeadline.now()
    let (answer, span) = try send(target, by: route, id)
    delivery.record.outcome = RequestOutcome(label)
    delivery.record.trace?.forwardAt = sentAt.uptimeNanoseconds
    defer {
      delivery.whenDisconnected = nil
      delivery.record.upstreamMicroseconds = microseconds(since: sentAt)
      answer.close()
    }
    do {
      return try await relay(answer, within: span, label: label)
    } catch {
      throw problem(of: error)
    }
  }

  /// Begins an exchange with the backend, whose answer is to begin within the span.
  @inline(never)
  private func send(
    _ target: RequestTarget, by route: Route?, _ id: RecordID?
  ) throws(Problem) -> (Backend.Exchange, Milliseconds) {
    guard let upstream = route?.policy.upstream ?? generation.fallback else { throw .noRoute }
    let answer = worker.backend.begin(
      UpstreamRequest(
        upstream: upstream, method: head.methodText, target: target.text,
        fields: UpstreamFields.make(for: delivery, target, to: upstream, id: id), body: passedBody,
        permit: nil, interim: delivery, upgrade: upgrade, bindsConnection: head.bindsConnection))
    // Without it the backend would be waited for, for as long as it has nothing to say.
    delivery.whenDisconnected = { [context = worker.context] in context.task { answer.close() } }
    return (answer, route?.policy.timeToAnswer ?? upstream.responseTimeout)
  }

  /// The protocols that the client asks for. With content it would have to be read first, by HTTP/1.1. Another HTTP
  /// is not asked for: whatever it carried would pass every route unseen.
  private var upgrade: ByteBuffer? {
    guard head.asksForUpgrade, head.connectionNames("upgrade"), delivery.request.framing.isEmpty,
      head.minorVersion == 1, head.upgradesLeaveHTTP
    else { return nil }
    return head.first(.upgrade).map { head.slice($0.valueRange) }
  }

  private var passedBody: RequestBody {
    switch delivery.request.framing {
    case .none: return .none
    case .length(let length):
      if let body = delivery.wholeBody { return .whole(body) }
      return .streamed(delivery, length: length)
    case .chunked:
      return .streamed(delivery, length: nil)
    }
  }

  /// Gives the client each piece as it comes.
  @inline(never)
  private func relay(
    _ answer: Backend.Exchange, within span: Milliseconds, label: AnswerLabel?
  ) async throws(UpstreamFailure) -> MessageHead? {
    let head = try await answer.head(within: span)
    if head.head.status == 101 {
      try await tunnel(answer, head.head)
    } else if let relay = begin(answer, head, label) {
      guard try await passOn(answer, by: relay) else { return nil }
    }
    return head.head
  }

  /// False where the client went away before the end.
  @inline(never)
  private func passOn(_ answer: Backend.Exchange, by relay: AnswerRelay) async throws(UpstreamFailure) -> Bool
  {
    let pause = generation.limits.tunnelTimeout
    var isWhole = false
    while delivery.isConnected, !isWhole {
      if let piece = try await answer.read(within: pause) { await relay.write(piece) } else { isWhole = true }
    }
    relay.end(trailers: answer.trailers)
    return isWhole
  }

  /// Writes what of an answer is here; `nil` where that is all of it.
  @inline(never)
  private func begin(_ answer: Backend.Exchange, _ head: UpstreamHead, _ label: AnswerLabel?) -> AnswerRelay?
  {
    let ready = answer.takeReady()
    guard !ready.isEnd else {
      CapturedAnswer(head: head, body: ready.bytes, trailers: answer.trailers).answer(delivery, label: label)
      return nil
    }
    let relay = AnswerRelay(head: head.head, label: label, delivery: delivery)
    relay.begin(with: ready.bytes)
    return relay
  }

  /// Passes bytes as they are, until the backend ends or the client is gone.
  @inline(never)
  private func tunnel(_ answer: Backend.Exchange, _ head: MessageHead) async throws(UpstreamFailure) {
    delivery.record.outcome = .upgraded
    delivery.switchProtocols(head)
    answer.tunnel(delivery)
    while delivery.isConnected, let piece = try await answer.read(within: nil) { await delivery.write(piece) }
    delivery.end()
  }

  private func problem(of failure: UpstreamFailure) -> Problem {
    switch failure {
    case .notSent: .upstreamUnreachable
    case .answerLost: .passageLost(.broken)
    case .timedOut: .passageLost(.timedOut)
    // What the client did to its body, or that it did nothing for too long.
    case .requestBody: delivery.bodyFailure ?? .requestTimeout
    }
  }
}
