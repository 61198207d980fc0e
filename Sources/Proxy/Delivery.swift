import Idempotency
import Loop
import NIOCore
import Telemetry
import Wire

/// Where a delivery's answer goes and its body comes from: one connection of HTTP/1.1, later one stream of HTTP/2.
protocol DeliveryChannel: AnyObject {
  /// Whether the peer takes more at the moment.
  var isWritable: Bool { get }
  func write(_ bytes: ByteBuffer)
  /// Asks for more of the body, after it was held back.
  func resumeBody()
  /// The answer has been written, whole.
  func finished(_ delivery: Delivery)
  /// Cuts the connection: what was begun cannot be ended well.
  func abort()
}

/// One delivery of a request by a client: its head, its body as it comes, and the way back for its answer.
///
/// Confined to the event loop of its connection.
final class Delivery: RequestBodyStream, @unchecked Sendable {
  /// How far the answer is.
  enum AnswerState { case none, begun, ended }

  let request: RequestHead
  let peer: ClientPeer
  let startedAt: NIODeadline
  let environment: ProxyEnvironment
  var record = AccessRecord()

  private weak var channel: (any DeliveryChannel)?
  private(set) var answerState: AnswerState = .none
  /// Whether the connection must close after the answer.
  private(set) var mustClose: Bool

  private var body = ByteBuffer()
  private(set) var bodyHasEnded: Bool
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

  /// Whether a runner has taken it.
  var isStarted = false

  init<Store, Backend>(
    request: RequestHead, channel: any DeliveryChannel, peer: ClientPeer, worker: Worker<Store, Backend>
  ) {
    self.request = request
    self.channel = channel
    self.peer = peer
    environment = worker.environment
    timers = worker.context.timers
    startedAt = .now()
    mustClose = !request.keepAlive
    bodyHasEnded = request.framing.isEmpty
    continueIsDue = request.expectsContinue && !request.framing.isEmpty
  }

  /// Whether the client is still there.
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

  func bodyEnded() {
    bodyHasEnded = true
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
    let deadline = NIODeadline.now() + .milliseconds(environment.limits.bodyTimeout.count)
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
    guard environment.counters.change(.bodyBytes, by: wanted) <= environment.limits.bodyMemory else {
      environment.counters.change(.bodyBytes, by: -wanted)
      throw .overloaded(.busy, retryAfter: 1000)
    }
    reservedBytes = wanted
  }

  /// Gives back the memory for the body. Called when nothing holds it any more.
  func releaseBody() {
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
      if await arrival.wait(milliseconds: environment.limits.bodyTimeout.count) == .timedOut {
        throw .requestBody("the request's body did not arrive in time")
      }
    }
  }

  private func sendContinue() {
    guard continueIsDue, answerState == .none else { return }
    continueIsDue = false
    guard body.readableBytes == 0 else { return }
    channel?.write(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"))
  }
}

// What the runner writes.
extension Delivery {
  /// Whether the answer must tell that the connection closes.
  func decideClosing() -> Bool {
    if !bodyHasEnded || environment.isDraining { mustClose = true }
    return mustClose
  }

  /// Writes a whole answer.
  func answer(_ bytes: ByteBuffer) {
    guard answerState == .none else { return }
    answerState = .ended
    record.responseBytes += bytes.readableBytes
    channel?.write(bytes)
    channel?.finished(self)
  }

  /// Writes an answer's head, and maybe the first of its body.
  func begin(_ bytes: ByteBuffer) {
    precondition(answerState == .none, "Delivery: an answer begun twice")
    answerState = .begun
    record.responseBytes += bytes.readableBytes
    channel?.write(bytes)
  }

  /// Writes a piece of the answer and returns once the client takes more, or is gone.
  func write(_ bytes: ByteBuffer) async {
    guard answerState == .begun else { return }
    record.responseBytes += bytes.readableBytes
    channel?.write(bytes)
    while let channel, !channel.isWritable { _ = await writability.wait() }
  }

  /// Ends an answer that was begun.
  func end(_ bytes: ByteBuffer = ByteBuffer(), closing: Bool = false) {
    guard answerState == .begun else { return }
    answerState = .ended
    if closing { mustClose = true }
    record.responseBytes += bytes.readableBytes
    if bytes.readableBytes > 0 { channel?.write(bytes) }
    channel?.finished(self)
  }

  /// Cuts the client's connection, since what was begun cannot be ended well.
  func abort() {
    answerState = .ended
    channel?.abort()
    channel = nil
  }
}
