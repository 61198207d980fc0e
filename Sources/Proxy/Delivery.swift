import Idempotency
import Loop
import NIOCore
import Telemetry
import Wire

/// One delivery of a request by a client: its head, its body as it comes, and the way back for its answer.
///
/// Confined to the event loop of its connection.
final class Delivery: RequestBodyStream, @unchecked Sendable {
  /// How far the answer is.
  enum AnswerState { case none, begun, ended }

  let request: RequestHead
  /// The client, also where a proxy that is believed stands between.
  let peer: ClientPeer
  let startedAt: NIODeadline
  let environment: ProxyEnvironment
  /// The configuration by which it is run, to its end.
  let generation: Generation
  var record = AccessRecord()
  /// Of a keyed request, once it is known.
  var recordID: RecordID?
  /// Whether its line has been logged.
  var isLogged = false

  /// `nil` once the answer is out or the client is gone. Not weak: an object that was ever held weakly counts its
  /// holders elsewhere, which is 1 % of a replay.
  private var channel: (any DeliveryChannel)?
  private(set) var answerState: AnswerState = .none

  private var body = ByteBuffer()
  private(set) var bodyHasEnded: Bool
  /// Trailer lines of the body, each ended by CRLF, once it has ended.
  private(set) var trailers = ByteBuffer()
  /// How the client broke its body off, where it did.
  private(set) var bodyFailure: Problem?
  /// How many bytes of body may stand here unread before the channel holds back.
  private var highWater = 64 << 10
  private let timers: LoopTimers
  private lazy var arrival = Signal(timers: timers)
  private lazy var writability = Signal(timers: timers)
  private var continueIsDue: Bool
  /// What this delivery holds of the memory for bodies.
  private var reservedBytes = 0

  /// Whether bytes pass as they are, both ways, since backend and client have switched protocols.
  private(set) var isTunnel = false

  /// Whether a runner has taken it.
  var isStarted = false
  /// Called when the client goes away.
  var whenDisconnected: (() -> Void)?
  /// Called when nothing runs for it any more, which may be long after its client went away.
  var whenRunEnds: (() -> Void)?

  init(
    request: RequestHead, channel: any DeliveryChannel, peer: ClientPeer, on downstream: Downstream
  ) {
    self.request = request
    self.channel = channel
    environment = downstream.environment
    generation = downstream.generation
    self.peer = peer.believing(request.head, by: downstream.generation.trustedProxies)
    timers = downstream.context.timers
    startedAt = .now()
    bodyHasEnded = request.framing.isEmpty
    continueIsDue = request.expectsContinue && !request.framing.isEmpty
  }

  /// Its connection; a name of its own once the client is gone.
  var connection: ObjectIdentifier { channel?.connection ?? ObjectIdentifier(self) }

  /// Whether the client is still there and waits for an answer, or its rest.
  var isConnected: Bool { channel != nil }
}

// What the connection tells.
extension Delivery {
  /// Whether more of the body may be decoded now.
  var wantsBody: Bool { body.readableBytes < highWater }

  func received(_ piece: ByteBuffer) {
    record.requestBytes += piece.readableBytes
    if body.readableBytes == 0 {
      body = piece
    } else {
      body.writeImmutableBuffer(piece)
    }
    if isStarted { arrival.set() }
  }

  func bodyEnded(trailers: ByteBuffer = ByteBuffer()) {
    bodyHasEnded = true
    self.trailers = trailers
    if isStarted { arrival.set() }
  }

  /// The client broke its framing or went away.
  func bodyFailed(_ problem: Problem) {
    bodyFailure = problem
    arrival.set()
  }

  func becameWritable() { writability.set() }

  func disconnected() {
    channel = nil
    record.hungUp = answerState != .ended
    if !bodyHasEnded { bodyFailed(.badRequest(.malformed)) }
    writability.set()
    if answerState != .ended { environment.counters.add(.hangUps) }
    whenDisconnected?()
    whenDisconnected = nil
  }
}

// What the runner reads.
extension Delivery {
  /// The body, where it is here already, without waiting.
  var wholeBody: ByteBuffer? { bodyHasEnded ? body : nil }

  /// Waits until the whole body is here.
  ///
  /// - Parameters:
  ///   - limit: in bytes; past it the request is refused.
  func collectBody(limit: Int) async throws(Problem) -> ByteBuffer {
    if case .length(let length) = request.framing, length > limit { throw .requestTooLarge(limit: limit) }
    try reserve(limit: limit)
    sendContinue()
    highWater = limit + 1
    let deadline = NIODeadline.now() + .milliseconds(generation.limits.bodyTimeout.count)
    channel?.resumeBody()
    while true {
      if let bodyFailure { throw bodyFailure }
      guard body.readableBytes <= limit else { throw .requestTooLarge(limit: limit) }
      if bodyHasEnded { return body }
      let left = (deadline - .now()).nanoseconds / 1_000_000
      if await arrival.wait(milliseconds: left) == .timedOut { throw .requestTimeout }
    }
  }

  /// Takes the memory that the body will need; all bodies held together stay within the limit.
  private func reserve(limit: Int) throws(Problem) {
    let wanted: Int
    if case .length(let length) = request.framing { wanted = length } else { wanted = limit }
    guard environment.counters.change(.bodyBytes, by: wanted) <= generation.limits.bodyMemory else {
      environment.counters.change(.bodyBytes, by: -wanted)
      throw .overloaded(.busy, retryAfter: 1000)
    }
    reservedBytes = wanted
  }

  /// Nothing runs for this delivery any more, whether its client has been answered or is gone.
  func runEnded() {
    releaseBody()
    whenRunEnds?()
    whenRunEnds = nil
  }

  /// Gives back the memory for the body. Called when nothing holds it any more.
  private func releaseBody() {
    if reservedBytes > 0 { environment.counters.change(.bodyBytes, by: -reservedBytes) }
    reservedBytes = 0
    body = ByteBuffer()
  }

  /// The next piece of a streamed body.
  func next() async throws(UpstreamFailure) -> ByteBuffer? {
    sendContinue()
    highWater = 256 << 10
    while true {
      if body.readableBytes > 0 {
        let piece = body
        body = ByteBuffer()
        channel?.resumeBody()
        return piece
      }
      if let bodyFailure { throw .requestBody(bodyFailure.detail) }
      if bodyHasEnded { return nil }
      channel?.resumeBody()
      // Once the answer has begun the two take turns, as in gRPC, and silence is no fault for long.
      let isTalk = answerState == .begun
      let span = isTalk ? generation.limits.tunnelTimeout : generation.limits.bodyTimeout
      let wait = await arrival.wait(milliseconds: isTunnel ? nil : span.count)
      if wait == .timedOut, isTalk || answerState != .begun {
        throw .requestBody("the request's body did not arrive in time")
      }
    }
  }

  private func sendContinue() {
    guard continueIsDue, answerState == .none else { return }
    continueIsDue = false
    guard body.readableBytes == 0 else { return }
    channel?.sendContinue()
  }
}

// What the runner writes.
extension Delivery {
  /// Writes a whole answer.
  func answer(_ answer: Answer) {
    guard answerState == .none else { return }
    answerState = .ended
    record.responseBytes += channel?.answer(answer) ?? 0
    channel = nil
  }

  /// Writes an answer's head, and maybe the first of its body.
  func begin(_ head: AnswerHead, with piece: ByteBuffer) {
    precondition(answerState == .none, "Delivery: an answer begun twice")
    answerState = .begun
    record.responseBytes += channel?.begin(head, with: piece) ?? 0
  }

  /// Writes an answer of 101; from then on `next` gives the client's bytes and `write` takes the backend's.
  func switchProtocols(_ head: MessageHead) {
    precondition(answerState == .none, "Delivery: an answer begun twice")
    answerState = .begun
    isTunnel = true
    bodyHasEnded = false
    record.status = head.status
    record.responseBytes += channel?.switchProtocols(head) ?? 0
  }

  /// Writes a piece of the answer and returns once the client takes more, or is gone.
  func write(_ piece: ByteBuffer) async {
    guard answerState == .begun else { return }
    record.responseBytes += channel?.write(piece) ?? 0
    while let channel, !channel.isWritable { _ = await writability.wait() }
  }

  /// Ends an answer that was begun.
  func end(with piece: ByteBuffer = ByteBuffer(), trailers: ByteBuffer = ByteBuffer()) {
    guard answerState == .begun else { return }
    answerState = .ended
    record.responseBytes += channel?.end(with: piece, trailers: trailers) ?? 0
    channel = nil
  }

  /// Cuts the client's connection, since what was begun cannot be ended well.
  func abort() {
    answerState = .ended
    channel?.abort()
    channel = nil
  }
}

extension Delivery: InterimReceiver {
  /// Hints that come before the answer; HTTP/1.0 knows none.
  func received(interim head: MessageHead) {
    guard answerState == .none, request.head.minorVersion == 1 else { return }
    channel?.interim(AnswerHead(source: .backend(head, nil), content: .unknown))
  }
}
