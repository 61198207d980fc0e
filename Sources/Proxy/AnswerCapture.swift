import Idempotency
import NIOCore
import Wire

/// Takes a claimed request's answer from the backend: whole, or, past what may be kept, relayed but for its last piece.
///
/// After a time-out it may run again and goes on where it was: what was once relayed is never taken for a whole answer.
final class AnswerCapture<Answer: UpstreamExchange> {
  private let answer: Answer
  private let route: Route
  private let claim: Claim
  private let delivery: Delivery
  /// Set once the answer is known to be too large to keep.
  private var relay: AnswerRelay?

  init(of answer: Answer, route: Route, claim: Claim, delivery: Delivery) {
    self.answer = answer
    self.route = route
    self.claim = claim
    self.delivery = delivery
  }

  func run(within span: Milliseconds) async throws(UpstreamFailure) -> CapturedAnswer {
    let deadline = NIODeadline.now() + .milliseconds(span.count)
    if relay == nil,
      case .whole(let body) = try await answer.collect(upTo: route.policy.maxResponseBody, within: span)
    {
      return CapturedAnswer(head: try await answer.head(within: nil), body: body, trailers: answer.trailers)
    }
    let head = try await answer.head(within: nil)
    return try await pass(on: relay ?? begin(head.head), of: head, until: deadline)
  }

  /// Begins to give the client what is too large to keep, unless the client has been told of a time-out.
  private func begin(_ head: MessageHead) -> AnswerRelay {
    let outcome = route.policy.outcomeClass(of: head.status, steering: Steering(of: head), claim: claim)
    let relay = AnswerRelay(head: head, label: AnswerEncoder.Label(outcome), delivery: delivery)
    self.relay = relay
    if delivery.answerState == .none { relay.begin() }
    return relay
  }

  /// Passes on all but the last piece, which waits for the store.
  ///
  /// A slow client holds the backend back, and that time does not count against the backend.
  private func pass(
    on relay: AnswerRelay, of head: UpstreamHead, until deadline: NIODeadline
  ) async throws(UpstreamFailure) -> CapturedAnswer {
    var left = deadline - .now()
    var last: ByteBuffer?
    while true {
      let askedAt = NIODeadline.now()
      guard let piece = try await answer.read(within: Milliseconds(left.nanoseconds / 1_000_000)) else {
        break
      }
      left = left - (.now() - askedAt)
      if let last { await relay.write(last) }
      last = piece
    }
    return CapturedAnswer(
      head: head, relay: relay, lastPiece: last ?? ByteBuffer(), trailers: answer.trailers)
  }
}
