import Idempotency
import Loop
import NIOCore
import Telemetry
import Wire

/// The way of a request without a record: streamed both ways, never stored.
extension RequestRunner {
  @inline(never)
  func passThrough(
    _ target: RequestTarget, by route: Route?, label: AnswerLabel?
  ) async throws(Problem) {
    guard let upstream = route?.policy.upstream ?? generation.fallback else { throw .noRoute }
    delivery.record.outcome = RequestOutcome(label)
    let sentAt = NIODeadline.now()
    delivery.record.trace?.forwardAt = sentAt.uptimeNanoseconds
    let answer = worker.backend.begin(
      UpstreamRequest(
        upstream: upstream, method: head.methodText, target: target.text,
        fields: UpstreamFields.make(for: delivery, target, to: upstream, protectedBy: nil), body: passedBody,
        permit: nil, interim: delivery, upgrade: upgrade))
    // Without it the backend would be waited for, for as long as it has nothing to say.
    delivery.whenDisconnected = { [context = worker.context] in context.task { answer.close() } }
    defer {
      delivery.whenDisconnected = nil
      delivery.record.upstreamMicroseconds = microseconds(since: sentAt)
      answer.close()
    }
    do {
      try await relay(answer, within: route?.policy.timeToAnswer ?? upstream.responseTimeout, label: label)
    } catch {
      throw problem(of: error)
    }
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
  private func relay(
    _ answer: Backend.Exchange, within span: Milliseconds, label: AnswerLabel?
  ) async throws(UpstreamFailure) {
    let head = try await answer.head(within: span)
    guard head.head.status != 101 else { return try await tunnel(answer, head.head) }
    let relay = AnswerRelay(head: head.head, label: label, delivery: delivery)
    let ready = answer.takeReady()
    if ready.isEnd {
      // All of it is here: one write.
      return CapturedAnswer(head: head, body: ready.bytes, trailers: answer.trailers).answer(
        delivery, label: label)
    }
    relay.begin(with: ready.bytes)
    while delivery.isConnected, let piece = try await answer.read(within: nil) { await relay.write(piece) }
    relay.end(trailers: answer.trailers)
  }

  /// Passes bytes as they are, until the backend ends or the client is gone.
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
