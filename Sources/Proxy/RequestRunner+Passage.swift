import Idempotency
import NIOCore
import Telemetry
import Wire

/// The way of a request without a record: streamed both ways, never stored.
extension RequestRunner {
  func passThrough(
    _ target: RequestTarget, by route: Route?, label: AnswerEncoder.Label?
  ) async throws(Problem) {
    guard let upstream = route?.policy.upstream ?? environment.fallback else { throw .noRoute }
    guard head.first(.upgrade) == nil else { throw .notImplemented }
    environment.counters.add(label == .unprotected ? .unprotected : .passedThrough)
    delivery.record.outcome = label?.rawValue ?? "passed"
    let sentAt = stopwatch()
    let answer = worker.backend.begin(
      UpstreamRequest(
        upstream: upstream, method: head.methodText, target: target.text,
        fields: UpstreamFields.make(for: delivery, target, to: upstream, protectedBy: nil), body: passedBody,
        permit: nil))
    defer {
      delivery.record.upstreamMicroseconds = microseconds(since: sentAt)
      answer.close()
    }
    do {
      try await relay(answer, within: route?.policy.timeToAnswer ?? upstream.responseTimeout, label: label)
    } catch {
      throw problem(of: error)
    }
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
    _ answer: Backend.Exchange, within span: Milliseconds, label: AnswerEncoder.Label?
  ) async throws(UpstreamFailure) {
    let head = try await answer.head(within: span)
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

  private func problem(of failure: UpstreamFailure) -> Problem {
    switch failure {
    case .notSent: .upstreamUnreachable
    case .answerLost: .passageLost(.broken)
    case .timedOut: .passageLost(.timedOut)
    case .requestBody: .badRequest(.malformed)
    }
  }
}
