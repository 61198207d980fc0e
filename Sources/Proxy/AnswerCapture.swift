import Idempotency
import NIOCore
import Wire

/// Takes a claimed request's answer from the backend: whole, or relayed but for its last bytes where it is too large
/// to keep or the route streams.
///
/// After a time-out it may run again and goes on where it was: what was once relayed is never taken for a whole answer.
final class AnswerCapture<Answer: UpstreamExchange> {
  /// The bytes for which memory was reserved before the claim.
  private static var firstStep: Int { CaptureShare.reservation }

  private let answer: Answer
  private let route: Route
  private let claim: Claim
  private let delivery: Delivery
  /// Set once the client is given the answer as it comes.
  private var relay: AnswerRelay?
  /// What was relayed so far, where it may yet be kept.
  private var copy: ByteBuffer?

  init(of answer: Answer, route: Route, claim: Claim, delivery: Delivery) {
    self.answer = answer
    self.route = route
    self.claim = claim
    self.delivery = delivery
  }

  func run(within span: Milliseconds) async throws(UpstreamFailure) -> CapturedAnswer {
    let deadline = NIODeadline.now() + .milliseconds(span.count)
    if relay == nil, !route.policy.stream {
      let step = min(route.policy.maxResponseBody, Self.firstStep)
      if case .whole(let body) = try await answer.collect(upTo: step, within: span) {
        return CapturedAnswer(head: try await answer.head(within: nil), body: body, trailers: answer.trailers)
      }
      if let body = try await collectMore(until: deadline) {
        return CapturedAnswer(head: try await answer.head(within: nil), body: body, trailers: answer.trailers)
      }
    }
    return try await pass(until: deadline)
  }

  /// Goes on where the first bytes were not all, as far as the answer may be kept and there is memory for it: what
  /// finds none is as one that is too large to keep.
  @inline(never)
  private func collectMore(until deadline: NIODeadline) async throws(UpstreamFailure) -> ByteBuffer? {
    let limit = route.policy.maxResponseBody
    var step = Self.firstStep
    // A known length is taken at once: captures that each hold a part and wait for the rest could wait for each other.
    let length = try await answer.head(within: nil).head.string(.contentLength).flatMap { Int($0) }
    if let length, length > limit { step = limit }
    while step < limit {
      step = min(limit, max(step * 2, length ?? 0))
      guard await delivery.mayCapture(step, within: Self.left(until: deadline)) else { break }
      let collected = try await answer.collect(upTo: step, within: Self.left(until: deadline))
      if case .whole(let body) = collected {
        delivery.settleCapture(body.readableBytes)
        return body
      }
    }
    delivery.releaseCapture()
    return nil
  }

  /// Takes an answer that is not kept whole, or not before the client has it.
  @inline(never)
  private func pass(until deadline: NIODeadline) async throws(UpstreamFailure) -> CapturedAnswer {
    let head = try await answer.head(within: Self.left(until: deadline))
    let relay = relay ?? makeRelay(head)
    guard !relay.endsWithHead else { return try await takeWhole(head, until: deadline) }
    begin(relay)
    return try await pass(on: relay, of: head, until: deadline)
  }

  /// Takes an answer whose head alone is the whole of it to a client: nothing of it may go out before it is stored.
  private func takeWhole(
    _ head: UpstreamHead, until deadline: NIODeadline
  ) async throws(UpstreamFailure) -> CapturedAnswer {
    var body = ByteBuffer()
    while let piece = try await answer.read(within: Self.left(until: deadline)) {
      body.writeImmutableBuffer(piece)
    }
    return CapturedAnswer(head: head, body: body, trailers: answer.trailers)
  }

  private static func left(until deadline: NIODeadline) -> Milliseconds {
    Milliseconds((deadline - .now()).nanoseconds / 1_000_000)
  }

  @inline(never)
  private func makeRelay(_ head: UpstreamHead) -> AnswerRelay {
    let outcome = route.policy.outcomeClass(
      of: head.head.status, steering: Steering(of: head.head), claim: claim)
    return AnswerRelay(head: head.head, label: AnswerLabel(outcome), delivery: delivery)
  }

  /// Begins to give the client what is too large to keep or is to be streamed, unless it was told of a time-out.
  @inline(never)
  private func begin(_ relay: AnswerRelay) {
    guard self.relay == nil else { return }
    self.relay = relay
    if route.policy.stream { copy = ByteBuffer() }
    if delivery.answerState == .none { relay.begin() }
  }

  /// Passes the answer on but for its last bytes, which wait for the store: the piece that completes its length, or
  /// where the end is marked by itself, that mark. A client that is told of neither is always one piece behind.
  ///
  /// A slow client holds the backend back, and that time does not count against the backend.
  private func pass(
    on relay: AnswerRelay, of head: UpstreamHead, until deadline: NIODeadline
  ) async throws(UpstreamFailure) -> CapturedAnswer {
    var left = deadline - .now()
    var held: ByteBuffer?
    var passed = 0
    while true {
      let askedAt = NIODeadline.now()
      guard let piece = try await answer.read(within: Milliseconds(left.nanoseconds / 1_000_000)) else {
        break
      }
      left = left - (.now() - askedAt)
      keep(piece)
      if let before = held { await relay.write(before) }
      passed += piece.readableBytes
      held = relay.mayEnd(after: passed) ? piece : nil
      if held == nil { await relay.write(piece) }
    }
    return CapturedAnswer(
      head: head, relay: relay, lastPiece: held ?? ByteBuffer(), copy: copy, trailers: answer.trailers)
  }

  /// Adds to the copy, which is given up once it is too large; the exchange never is.
  private func keep(_ piece: ByteBuffer) {
    guard let size = copy?.readableBytes else { return }
    let whole = size + piece.readableBytes
    if whole <= route.policy.maxResponseBody, delivery.mayCapture(whole) {
      copy?.writeImmutableBuffer(piece)
    } else {
      copy = nil
      delivery.releaseCapture()
    }
  }
}
