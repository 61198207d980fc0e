import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

/// One delivery of a request by a client: its head, its body as it arrives, and the way back for its response.
///
/// `RequestBodyIntake` and `ResponseProgress` decide. Confined to the event loop of its connection, hence
/// `@unchecked Sendable`.
final class Delivery: RequestBodyStream, @unchecked Sendable {
  /// The progress of the response.
  enum ResponseState { case none, begun, ended }

  private enum Run {
    /// No runner has taken the delivery yet. Followed by `started`, and by `reported` when the process ends before.
    case due
    /// Followed by `reported`.
    case started
    /// The metrics and the access log have the request. No runner starts it any more. A runner that has started may
    /// still listen for a late response.
    case reported
  }

  let request: RequestHead
  /// The client, also one behind a trusted proxy.
  let peer: ClientPeer
  let startedAt: NIODeadline
  let environment: ProxyEnvironment
  /// The configuration that the delivery keeps to its end.
  let configuration: ConfigurationSnapshot
  /// The entry of the access log, which is filled during the run.
  var logEntry = AccessLogEntry()
  /// The id of a keyed request, once it is known.
  var recordID: RecordID?
  /// The GraphQL operation in its body, and the methods that a form there names, once it has been read for a route.
  var operation = GraphQLOperation.unread
  var form = MethodParameter.Form.unread
  /// The request's tokens by their places, once they have been verified or refused.
  var tokens: [TokenPlace: TokenReading] = [:]
  /// The caller, once it is known, and the hash by which the request is counted in its quota; `nil` if it is not.
  var (caller, quotaCaller): (Caller?, Int?) = (nil, nil)
  /// The further items of a batch that count with it.
  var quotaItems = 0
  /// The form of refusals, the fields for pages of other origins, and what the route states more, each by its route.
  var errorFormat = ErrorFormat.problem
  var crossOrigin: CrossOrigin?
  var routeFields: RouteFields?
  /// Called when the client goes away.
  var didDisconnect: (() -> Void)?
  /// Whether the client has ended its sending side. It reads on, or has closed its socket and is gone: TCP shows no
  /// difference before something is written to it.
  private(set) var isHalfClosed = false
  /// Called when the client ends its sending side.
  var didHalfClose: (() -> Void)?
  /// Called when the body fails.
  private var didFailBody: (@Sendable () -> Void)?
  /// Called when nothing runs for it any more, which may be long after the client went away.
  var didEndRun: (() -> Void)?

  /// `nil` once the response is written or the client is gone. Not weak: an object that was ever held weakly counts its
  /// holders elsewhere, which is 1 % of a replay.
  private var channel: (any DeliveryChannel)?
  private var run = Run.due
  private var intake: RequestBodyIntake
  private var progress: ResponseProgress
  private var pace = UploadPace()
  /// The time-out of its body, by its route.
  var bodyTimeout: Milliseconds
  let timers: LoopTimers
  private lazy var arrival = Signal(timers: timers)
  private lazy var writability = Signal(timers: timers)
  /// The memory that the request holds, and that its response does before its client is given any of it.
  var memory: RequestMemory

  /// - Parameter weight: The memory that the request takes beside its head, in bytes.
  init(
    request: RequestHead, channel: any DeliveryChannel, memory: ConnectionMemory, peer: ClientPeer,
    weight: Int = 0, on downstream: Downstream
  ) {
    self.request = request
    self.channel = channel
    environment = downstream.environment
    configuration = downstream.configuration
    bodyTimeout = configuration.limits.bodyTimeout
    self.peer = peer.believing(request.head, by: downstream.configuration.trustedProxies)
    timers = downstream.context.timers
    startedAt = .now()
    intake = RequestBodyIntake(isWhole: request.framing.isEmpty)
    progress = ResponseProgress(expectsContinue: request.expectsContinue && !request.framing.isEmpty)
    self.memory = RequestMemory(of: memory, headBytes: weight + request.head.bytes.readableBytes)
  }

  /// The identity of the client's connection; the delivery's own identity once the client is gone.
  var connection: ObjectIdentifier { channel?.connection ?? ObjectIdentifier(self) }

  /// Whether the client is still there and waits for the response or its rest.
  var isConnected: Bool { channel != nil }

  var responseState: ResponseState {
    if progress.hasNotBegun { return .none }
    return progress.isEnded ? .ended : .begun
  }

  /// Whether bytes pass unchanged, both ways, since client and backend have switched protocols.
  var isTunnel: Bool { progress.isTunnel }

  /// Whether a runner has taken it.
  var isStarted: Bool { run != .due }

  /// Whether a runner has taken it, and it is not reported yet.
  var isRunning: Bool { run == .started }

  /// Hands the delivery to its runner, once. Returns false if none takes it any more.
  @discardableResult
  func start(on downstream: Downstream) -> Bool {
    timers.assertOnLoop()
    guard run == .due else { return false }
    run = .started
    invariant(progress.hasNotBegun, "a request runs that has its response")
    downstream.start(self)
    return true
  }

  /// Whether the request is to be reported, which is due once.
  func takeReport() -> Bool {
    timers.assertOnLoop()
    guard run != .reported else { return false }
    run = .reported
    return true
  }

  /// Ends the delivery: nothing runs for it any more, whether its client got a response or is gone.
  func runEnded() {
    timers.assertOnLoop()
    memory.drop()
    // A task that waits for the rest of the body, or for a tunnel's bytes, would wait for ever.
    if !intake.isWhole { bodyFailed(.badRequest(.malformed)) }
    intake.removeAll()
    didFailBody = nil
    didEndRun?()
    didEndRun = nil
  }
}

// The connection's side.
extension Delivery {
  /// Whether more of the body may be decoded now.
  var wantsBody: Bool { intake.wantsMore }

  var bodyHasEnded: Bool { intake.isWhole }

  func received(_ piece: ByteBuffer) {
    timers.assertOnLoop()
    logEntry.requestBytes += piece.readableBytes
    guard intake.isOpen, !progress.isEnded else { return }
    guard memory.take(piece.readableBytes) else { return bodyFailed(.overloaded(.busy)) }
    intake.append(piece)
    if isStarted { arrival.set() }
  }

  /// Handles the end of the body. A client's trailers are not passed on, and not kept.
  func bodyEnded() {
    timers.assertOnLoop()
    intake.finish()
    memory.leaveWaiting()
    if isStarted { arrival.set() }
  }

  /// Handles the failure of the body, which cannot become whole. The first reason counts.
  func bodyFailed(_ problem: Problem) {
    intake.fail(problem)
    memory.leaveWaiting()
    arrival.set()
    didFailBody?()
    didFailBody = nil
  }

  func becameWritable() { writability.set() }

  /// Handles the end of the client's sending side.
  func halfClosed() {
    timers.assertOnLoop()
    isHalfClosed = true
    didHalfClose?()
    didHalfClose = nil
  }

  func disconnected() {
    timers.assertOnLoop()
    channel = nil
    logEntry.hungUp = !progress.isEnded
    if !intake.isWhole { bodyFailed(.badRequest(.malformed)) }
    writability.set()
    if !progress.isEnded { environment.counters.add(.hangUps) }
    didDisconnect?()
    didDisconnect = nil
  }
}

// The request's body, for the runner.
extension Delivery {
  /// The body, if it is here already.
  var wholeBody: ByteBuffer? { intake.whole }

  /// The reason for which the body cannot become whole.
  var bodyFailure: Problem? { intake.failure }

  /// Waits until the whole body is here.
  ///
  /// - Parameter limit: The number of bytes above which the request is refused.
  func collectBody(limit: Int) async throws(Problem) -> ByteBuffer {
    timers.assertOnLoop()
    if case .length(let length) = request.framing, length > limit { throw .requestTooLarge(limit: limit) }
    sendContinue()
    intake.beginCollecting(limit: limit)
    var pace = BodyPace()
    channel?.resumeBody()
    while true {
      switch intake.collected(limit: limit) {
      case .use(let body): return body
      case .refuse(let problem): throw problem
      case .wait: try await pace.wait(for: arrival, within: bodyTimeout, after: logEntry.requestBytes)
      }
    }
  }

  /// Whether a body that is passed through is awaited before its exchange begins: with a slow client it would occupy
  /// the backend. One that comes only after 100 (Continue), which is sent once the backend is reached, is not.
  var isBodyAwaited: Bool { intake.isOpen && intake.wantsMore && !progress.isContinueDue }

  /// Waits until the body is whole, or as much of it is here as is read ahead (64 KiB), for a quarter of a second at
  /// most: the client may await the response to what it has sent.
  func awaitBeginning() async {
    timers.assertOnLoop()
    var deadline = LateDeadline(in: Self.maxBeginning)
    while isBodyAwaited {
      channel?.resumeBody()
      let wait = await arrival.wait(milliseconds: deadline.left())
      if wait == .timedOut, deadline.isOver() { return }
    }
  }

  /// The time for which the beginning of a body is awaited, in milliseconds: a round trip or two, and short enough for
  /// those who speak in turns.
  private static let maxBeginning: Int64 = 250

  /// The next piece of a streamed body.
  func next() async throws(UpstreamFailure) -> ByteBuffer? {
    timers.assertOnLoop()
    sendContinue()
    intake.beginStreaming()
    memory.lend(0)
    while true {
      switch intake.takeNext() {
      case .use(let piece):
        memory.lend(piece.readableBytes)
        channel?.resumeBody()
        return piece
      case .fail(let problem): throw .requestBody(problem.detail)
      case .end: return nil
      case .wait: try await waitForBody()
      }
    }
  }

  var failure: UpstreamFailure? { intake.failure.map { .requestBody($0.detail) } }

  func whenFailed(_ act: @escaping @Sendable () -> Void) { didFailBody = act }

  private func waitForBody() async throws(UpstreamFailure) {
    channel?.resumeBody()
    let limit = progress.bodyTimeLimit
    guard let left = milliseconds(of: limit) else {
      _ = await arrival.wait()
      return
    }
    let began = NIODeadline.now()
    var deadline = LateDeadline(in: left, now: began)
    while await arrival.wait(milliseconds: deadline.left()) == .timedOut {
      guard deadline.isOver() else { continue }
      let hasBegunMeanwhile = limit == .upload && progress.bodyTimeLimit != .upload
      guard hasBegunMeanwhile else { throw .requestBody("the request's body did not arrive in time") }
      break
    }
    pace.didWait(Milliseconds(.now() - began), of: left)
  }

  /// The time that is left, in milliseconds.
  private func milliseconds(of limit: ResponseProgress.BodyTimeLimit) -> Int64? {
    switch limit {
    case .upload: pace.left(of: bodyTimeout, after: logEntry.requestBytes)
    case .conversation: configuration.limits.tunnelTimeout.count
    case .unlimited: nil
    }
  }

  private func sendContinue() {
    if progress.takeContinue(hasBody: !intake.isEmpty) { channel?.sendContinue() }
  }
}

// The response, for the runner.
extension Delivery {
  /// Reserves memory for a replay of this body; false if there is not enough. Call `respond` next.
  func admitReplay(_ body: ByteBuffer, of record: CompletedRecord) -> Bool {
    OutgoingMemory.isSmall(body.readableBytes) || channel?.admitReplay(body, of: record) ?? true
  }

  /// Writes a whole response.
  func respond(with response: ClientResponse) {
    timers.assertOnLoop()
    guard progress.respond() else { return }
    memory.releaseCapture()
    var response = response
    response.head.crossOrigin = crossOrigin
    response.head.routeFields = routeFields
    logEntry.responseBytes += channel?.respond(with: response) ?? 0
    channel = nil
  }

  /// Writes a response's head, and maybe the first piece of its body.
  func begin(_ head: ClientResponseHead, with piece: ByteBuffer) {
    timers.assertOnLoop()
    progress.begin()
    // The two sides take turns from now on.
    memory.leaveWaiting()
    // A claimed request's response that is not kept goes out even without memory, because no retry can get it.
    if memory.isReserved { channel?.admitNextPiece() }
    var head = head
    head.crossOrigin = crossOrigin
    head.routeFields = routeFields
    logEntry.responseBytes += channel?.begin(head, with: piece) ?? 0
  }

  /// Writes a response of 101. From then on `next` returns the client's bytes and `write` takes the backend's.
  func switchProtocols(_ head: MessageHead, label: ResponseLabel?) {
    timers.assertOnLoop()
    progress.becomeTunnel()
    intake.becomeTunnel()
    logEntry.status = head.status
    logEntry.responseBytes += channel?.switchProtocols(head, label: label) ?? 0
  }

  /// Writes a piece of the response and returns once the client takes more, or is gone.
  func write(_ piece: ByteBuffer) async {
    timers.assertOnLoop()
    guard progress.isBegun else { return }
    logEntry.responseBytes += channel?.write(piece) ?? 0
    while let channel, !channel.isWritable { _ = await writability.wait() }
  }

  /// Ends a response that was begun.
  func end(with piece: ByteBuffer = ByteBuffer(), trailers: ByteBuffer = ByteBuffer()) {
    timers.assertOnLoop()
    guard progress.end() else { return }
    memory.releaseCapture()
    logEntry.responseBytes += channel?.end(with: piece, trailers: trailers) ?? 0
    channel = nil
  }

  /// Cuts the client's connection: the response that was begun cannot be completed.
  func abort() {
    timers.assertOnLoop()
    progress.cut()
    channel?.abort()
    channel = nil
  }
}

extension Delivery: InterimReceiver {
  /// Passes on hints that precede the response. HTTP/1.0 knows none.
  func received(interim head: MessageHead) {
    timers.assertOnLoop()
    guard request.head.minorVersion == 1, progress.takeHint(isWritable: channel?.isWritable == true) else {
      return
    }
    channel?.interim(ClientResponseHead(source: .backend(head, nil), content: .unknown))
  }
}

extension Delivery: ResponseReader {
  var turn: Int { quotaCaller ?? caller?.hashValue ?? 0 }
}
