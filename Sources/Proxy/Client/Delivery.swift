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
  /// The number of interim responses that the client was given.
  private var interims = 0
  private let memory: ConnectionMemory
  /// What this delivery holds of the memory for bodies: its own, and beside it the response that is captured for it.
  private(set) var heldBytes = 0
  private var reservedBytes = 0
  private var capturedBytes = 0
  /// The caller for whom a response is captured.
  private var caller: Caller?
  /// What the backend's side was given last and may still hold.
  private var lentBytes = 0

  /// Whether bytes pass as they are, both ways, since backend and client have switched protocols.
  private(set) var isTunnel = false

  /// Whether a runner has taken it.
  var isStarted = false
  /// Called when the client goes away.
  var whenDisconnected: (() -> Void)?
  /// Called when nothing runs for it any more, which may be long after its client went away.
  var whenRunEnds: (() -> Void)?

  init(
    request: RequestHead, channel: any DeliveryChannel, memory: ConnectionMemory, peer: ClientPeer,
    on downstream: Downstream
  ) {
    self.request = request
    self.channel = channel
    self.memory = memory
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
    guard bodyFailure == nil, answerState != .ended else { return }
    guard take(piece.readableBytes) else { return bodyFailed(.overloaded(.busy, retryAfter: 1000)) }
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

  /// The body cannot become whole. The first reason stands.
  func bodyFailed(_ problem: Problem) {
    if bodyFailure == nil { bodyFailure = problem }
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
    sendContinue()
    highWater = limit + 1
    var deadline = LateDeadline(in: generation.limits.bodyTimeout.count)
    channel?.resumeBody()
    while true {
      if let bodyFailure { throw bodyFailure }
      guard body.readableBytes <= limit else { throw .requestTooLarge(limit: limit) }
      if bodyHasEnded { return body }
      let wait = await arrival.wait(milliseconds: deadline.left())
      if wait == .timedOut, deadline.isOver() { throw .requestTimeout }
    }
  }

  /// Nothing runs for this delivery any more, whether its client has been answered or is gone.
  func runEnded() {
    releaseBody()
    whenRunEnds?()
    whenRunEnds = nil
  }

  /// Gives back the memory for the bodies. Called when nothing holds them any more.
  private func releaseBody() {
    give(heldBytes)
    releaseCapture()
    lentBytes = 0
    body = ByteBuffer()
  }

  private func take(_ count: Int) -> Bool {
    guard memory.take(count, beside: heldBytes) else { return false }
    heldBytes += count
    return true
  }

  private func give(_ count: Int) {
    guard count > 0 else { return }
    memory.give(count)
    heldBytes -= count
  }

  /// The next piece of a streamed body.
  func next() async throws(UpstreamFailure) -> ByteBuffer? {
    sendContinue()
    highWater = 256 << 10
    give(lentBytes)
    lentBytes = 0
    while true {
      if body.readableBytes > 0 {
        let piece = body
        lentBytes = piece.readableBytes
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

// The memory for its response, before the client is given any of it.
extension Delivery {
  /// The longest wait for room in the share of captures, in milliseconds: several captures end in that time.
  private static var capturePatience: Int64 { 1000 }
  /// The time between two looks, in milliseconds.
  private static var capturePause: Int64 { 10 }

  /// Whether there is memory for a body and a response: without it nothing new is claimed or sent.
  var hasMemory: Bool { memory.hasRoom(beside: heldBytes) }

  /// Reserves memory for the response, once; false if there is none. Must precede the claim.
  func reserveCapture(for caller: Caller) -> Bool {
    guard reservedBytes == 0 else { return true }
    guard memory.reserveCapture() else { return false }
    reservedBytes = CaptureShare.reservation
    self.caller = caller
    return true
  }

  /// Takes memory so that this much of a response may be captured in all; false if there is none.
  func mayCapture(_ count: Int) -> Bool {
    let more = count - reservedBytes - capturedBytes
    guard more > 0 else { return true }
    guard memory.capture(more, beside: capturedBytes, caller: callerHash) else { return false }
    capturedBytes += more
    return true
  }

  /// As `mayCapture`, but waits a moment for the end of other captures.
  func mayCapture(_ count: Int, within span: Milliseconds) async -> Bool {
    // Not the same for all: of captures that wait for each other one gives up first.
    let patience = Int64.random(in: Self.capturePatience / 2...Self.capturePatience)
    let end = NIODeadline.now() + .milliseconds(min(span.count / 2, patience))
    while !mayCapture(count) {
      guard NIODeadline.now() < end else { return false }
      _ = await Signal(timers: timers).wait(milliseconds: Self.capturePause)
    }
    return true
  }

  /// Keeps the memory for so many captured bytes, and gives back the rest.
  func settleCapture(_ count: Int) {
    let left = max(count - reservedBytes, 0)
    guard capturedBytes > left else { return }
    memory.giveCaptured(capturedBytes - left, caller: callerHash)
    capturedBytes = left
  }

  /// Nothing is captured any more: it is given to the client, who is counted from now on, or was given up.
  func releaseCapture() {
    settleCapture(0)
    if reservedBytes > 0 { memory.giveReservation() }
    reservedBytes = 0
  }

  private var callerHash: Int { caller?.framed.hashValue ?? 0 }
}

// What the runner writes.
extension Delivery {
  /// Writes a whole answer.
  func answer(_ answer: Answer) {
    guard answerState == .none else { return }
    answerState = .ended
    releaseCapture()
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
    releaseCapture()
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
  /// Enough for any hints, and for a sign of life every twenty seconds over half an hour.
  private static var maxInterims: Int { 100 }

  /// Hints that come before the response; HTTP/1.0 knows none. They may be left out, and are where the client does not
  /// take them or the backend does not stop: they would wait in memory.
  func received(interim head: MessageHead) {
    guard answerState == .none, request.head.minorVersion == 1 else { return }
    guard interims < Self.maxInterims, channel?.isWritable == true else { return }
    interims += 1
    channel?.interim(AnswerHead(source: .backend(head, nil), content: .unknown))
  }
}
