import Idempotency
import NIOCore
import NIOHPACK
import NIOHTTP2
import Platform
import Telemetry
import Wire

/// One stream of a client's HTTP/2 connection: one delivery, its body as it is wanted, and its response as the client's
/// window allows.
///
/// `HTTP2StreamMachine` decides, this handler acts. Confined to its event loop, hence `@unchecked Sendable`.
final class ClientStream: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  let session: ClientSession
  let downstream: Downstream
  /// The memory of a frame of DATA that the codec keeps, besides its bytes, by measurement.
  private static let heldFrameBytes = 256
  /// The memory of a stream that waits, beside its head and its response: channel, pipeline, handlers, and frames.
  static let weight = 4 << 10

  private(set) var context: ChannelHandlerContext?
  /// Its number among its connection's streams.
  var number = 0
  private var id: HTTP2StreamID?
  var machine = HTTP2StreamMachine()
  var delivery: Delivery?
  /// Whether the stream is refused: it is one too many, or the connection ends.
  private var isRefused = false
  /// Whether the stream is read.
  private var isReading = true
  /// The memory for frames that the codec keeps while the stream is not read, in bytes.
  private var heldFrameMemory = 0
  /// Whether the delivery counts as under way. It does until its response is complete or, if the stream was reset,
  /// until its run has ended.
  private var holdsSlot = false
  /// The part of the response that the codec was not given yet: it would hold it without bound.
  var outgoing = OutgoingBody()
  /// The fields that follow the response's body.
  var trailers = HPACKHeaders([])
  /// The memory for the bodies that the response holds.
  var outgoingMemory: OutgoingMemory
  /// The memory for a response that waits for the client, beside its body: `weight`, or none.
  var unreadMemory = 0
  /// Whether the session will look at the response once the read is over.
  var isUnreadNoted = false
  /// The number of writes that have not left yet.
  var unwritten = 0
  /// The number of bytes of the body in these writes.
  var unwrittenBytes = 0
  /// The time at which the client last took some of the body, or at which the wait for that began.
  var progressedAt = NIODeadline.distantPast
  var timer: LoopTimers.Token?

  init(of session: ClientSession) {
    self.session = session
    downstream = session.downstream
    outgoingMemory = OutgoingMemory(of: session.memory)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    downstream.context.loop.assertInEventLoop()
    self.context = context
    if let id = try? context.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID) {
      self.id = id
      isRefused = !session.opened(self, id)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let block):
      session.didTake(block.headers)
      if machine.awaitsHead {
        begin(block.headers, isEnd: block.endStream)
      } else {
        end(block.headers, isEnd: block.endStream)
      }
    case .data(let data):
      if case .byteBuffer(let piece) = data.data { receive(piece, isEnd: data.endStream) }
    default:
      break
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    delivery?.start(on: downstream)
    delivery?.countHead()
    if let delivery, !delivery.bodyHasEnded, !delivery.wantsBody { setReading(false) }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if isWritable { delivery?.becameWritable() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    stopTimer()
    machine.close()
    countHeldFrames(false)
    releaseUnread()
    self.context = nil
    dropOutgoing()
    // The exchange continues without the client.
    delivery?.disconnected()
    if let delivery, !delivery.isStarted { delivery.runEnded() }
    delivery = nil
    session.ended(self)
  }
}

// The client's frames.
extension ClientStream {
  private func begin(_ fields: HPACKHeaders, isEnd: Bool) {
    guard !isRefused else { return refuse() }
    do throws(WireError) {
      let request = try RequestHead(http2: fields.pairs, isEnd: isEnd, limits: downstream.limits.head)
      machine.didAcceptHead(request.framing, isEnd: isEnd)
      guard session.acquireSlot() else { return refuse() }
      invariant(delivery == nil && !holdsSlot, "a stream has a second request")
      let delivery = Delivery(
        request: request, channel: self, memory: session.memory, peer: session.peer, weight: Self.weight,
        on: downstream)
      holdsSlot = true
      delivery.didEndRun = { [self] in releaseSlot() }
      self.delivery = delivery
    } catch {
      machine.didRefuseHead(isMalformed: error.status == 400, isEnd: isEnd)
      downstream.environment.counters.add(.framingErrors)
      let problem = Problem.unreadable(error)
      downstream.noteUnread(problem, from: session.peer)
      _ = respond(with: ClientResponse(problem))
    }
  }

  private func refuse() {
    reset(.refusedStream)
    session.refused()
  }

  private func receive(_ piece: ByteBuffer, isEnd: Bool) {
    switch machine.didReceiveData(piece.readableBytes, isEnd: isEnd) {
    case .deliver:
      if piece.readableBytes > 0 { delivery?.received(piece.compact) }
      if isEnd { delivery?.bodyEnded() }
    case .fail(let error): fail(error)
    case .drop: break
    }
  }

  /// The fields after the body.
  private func end(_ fields: HPACKHeaders, isEnd: Bool) {
    switch machine.didReceiveTrailers(isEnd: isEnd) {
    case .deliver:
      do throws(WireError) {
        _ = try HTTP2Trailers.lines(fields.pairs, limits: downstream.limits.head)
        delivery?.bodyEnded()
      } catch {
        machine.didRefuseTrailers()
        fail(error)
      }
    case .fail(let error): fail(error)
    case .drop: break
    }
  }

  private func fail(_ error: WireError) {
    downstream.environment.counters.add(.framingErrors)
    delivery?.bodyFailed(.unreadable(error))
  }

  /// The connection brings nothing more. The frames that the codec holds are still read.
  func inputClosed() {
    setReading(true)
    if machine.inputClosed() { delivery?.bodyFailed(.badRequest(.malformed)) }
    delivery?.halfClosed()
  }

  func resumeBody() { setReading(true) }

  private func setReading(_ isWanted: Bool) {
    guard isWanted != isReading, let context else { return }
    isReading = isWanted
    countHeldFrames(!isWanted)
    context.setReading(isWanted)
  }

  /// Begins or ends to count the frames that the codec keeps. A window of DATA frames of one byte takes 256 times as
  /// much memory as their bytes.
  private func countHeldFrames(_ isHeldBack: Bool) {
    guard let id else { return }
    if isHeldBack { session.holdBack(self, id) } else { session.readsAgain(id) }
    session.memory.give(heldFrameMemory)
    heldFrameMemory = 0
  }

  /// Takes memory for a frame that the codec keeps. Without any the stream is reset.
  func holdFrame() {
    invariant(!isReading, "a frame is held of a stream that is read")
    guard session.memory.take(Self.heldFrameBytes, beside: heldFrameMemory) else {
      return reset(.enhanceYourCalm)
    }
    heldFrameMemory += Self.heldFrameBytes
  }

  func releaseSlot() {
    if holdsSlot { session.releaseSlot() }
    holdsSlot = false
  }
}

extension HPACKHeaders {
  /// A response's head.
  init(_ head: ClientResponseHead) {
    var lines = ByteBufferAllocator().buffer(capacity: head.capacity)
    head.writeFields(into: &lines)
    if case .length(let length) = head.content { lines.writeContentLength(length) }
    self.init([(":status", String(head.status))])
    reserveCapacity(24)
    add(lines: lines)
  }

  /// Field lines, each ended by CRLF.
  init(lines: ByteBuffer) {
    self.init([])
    add(lines: lines)
  }

  private mutating func add(lines: ByteBuffer) {
    lines.eachFieldLine { add(name: $0, value: $1) }
  }

  /// Names and values as they were decoded.
  var pairs: [(name: String, value: String)] { map { ($0.name, $0.value) } }

  /// Whether it surely fits a single frame.
  var fitsFrame: Bool {
    let forms = HPACKBound.fieldBytes * (count + 1)
    guard forms + HPACKBound.byteBits * byteCount / 8 > HPACKBound.frameBytes else { return true }
    let texts = reduce(0) {
      $0 + HPACKBound.maxBytes(for: $1.name.utf8) + HPACKBound.maxBytes(for: $1.value.utf8)
    }
    return forms + texts <= HPACKBound.frameBytes
  }

  /// The number of bytes of all names and values.
  var byteCount: Int { reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } }
}
