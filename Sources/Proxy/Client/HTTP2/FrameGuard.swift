import Idempotency
import NIOCore
import Platform
import Wire

/// Corrects the codec, between it and the socket: the codec limits PINGs that a client may send freely, does not limit
/// other frames that advance no request (`FrameIntake`), lets the client decide on the size of a table
/// (`HeaderTableLimit`), keeps what it has read while reads end within frames (`WholeFrames`), handles all frames of a
/// read in one turn of the loop (`DecodingBudget`), ends a connection without stating which streams were taken, and
/// takes no new streams once any end has been announced.
///
/// RFC 9113, section 6.8, lets a client repeat all requests above the last stream of a GOAWAY, POST included, and the
/// codec sends 0 to a client that misbehaves.
///
/// The codec also keeps to the limits of its SETTINGS only once they are acknowledged, and takes heads of 16 KiB until
/// then, although clients send larger ones at once. Its first SETTINGS hold the limits of heads and streams alone, and
/// bind no client: they are taken out here, and acknowledged as soon as the client's have come.
///
/// The codec ends the whole connection for a stream beyond the announced number, where RFC 9113, section 5.1.2, has that
/// stream alone refused, as `HTTP2Drain` does. So the codec allows more than what is announced here.
final class FrameGuard: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  /// An outbound event: a GOAWAY with NO_ERROR.
  ///
  /// It passes the codec by, which would refuse all streams from the announcement on, although the client does not know
  /// it yet, and would end the connection for the body of a refused one.
  struct OrderlyEnd {
    /// The last stream that counts.
    let last: Int
  }

  /// An outbound event: the end of a connection that floods.
  struct Flood {}

  /// The number of HEADERS after which the streams take them, and their decoded bytes are charged.
  private static let maxUncharged = 8

  /// The step in which bytes that are not whole are counted, a power of two.
  private static let unfinishedStep = 4 << 10
  private static let pingAck: [UInt8] = [0, 0, 8, 6, 1, 0, 0, 0, 0]

  /// The head of a GOAWAY, before the last stream and the error.
  private static let goAwayHead: [UInt8] = [0, 0, 8, 7, 0, 0, 0, 0, 0]
  private static let noError: UInt32 = 0
  private static let streamClosed: UInt32 = 5
  private static let enhanceYourCalm: UInt32 = 11
  /// The identifier of SETTINGS_MAX_CONCURRENT_STREAMS.
  private static let maxConcurrentStreams: UInt16 = 3

  private let session: ClientSession
  private var intake: FrameIntake
  private var headerTable = HeaderTableLimit(prefaceBytes: FrameIntake.magicBytes)
  private var wholeFrames = WholeFrames(prefaceBytes: FrameIntake.magicBytes)
  /// Whether the connection has ended, or ends for a flood: nothing more is passed on.
  private var isOver = false
  /// The number of HEADERS that were passed on, and of which streams may not have taken all: the codec gives streams
  /// their frames at the end of a read.
  private var passedRequests = 0
  /// Whether pieces are being passed on. What they lead to may read the socket again.
  private var isPassing = false
  /// Whether a later turn of the loop passes on what this one has left over.
  private var isBehind = false
  /// Whether the socket is to be read once nothing is left over.
  private var isReadDue = false
  /// Whether the client's input has ended behind what is left over.
  private var isInputClosed = false
  /// Whether the codec's first SETTINGS have been taken out.
  private var hasTakenSettings = false
  /// The number of bytes of the frame under way that were not written yet.
  private var payloadLeft = 0

  /// - Parameter maxControlFrames: The number of frames that advance no request, within 30 s and beyond the credit.
  init(of session: ClientSession, maxControlFrames: Int) {
    self.session = session
    intake = FrameIntake(
      budget: FrameBudget(max: maxControlFrames), maxStreams: session.downstream.limits.http2MaxStreams)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return }
    var bytes = unwrapInboundIn(data)
    headerTable.apply(to: &bytes)
    wholeFrames.append(bytes)
    if !isBehind { pass(context) }
  }

  /// Passes on what has arrived, as much as one turn may.
  private func pass(_ context: ChannelHandlerContext) {
    guard !isPassing else { return }
    isPassing = true
    defer { isPassing = false }
    var budget = DecodingBudget()
    while !isOver {
      if budget.isOver { return passLater(context) }
      guard let piece = wholeFrames.next() else { return caughtUp(context) }
      budget.charge(pass(piece, context))
      if passedRequests >= Self.maxUncharged { beginStreams(context) }
      budget.charge(headBytes: session.takeDecodedBytes())
    }
  }

  /// Has the streams take what was passed on, whose decoded size is not known before.
  private func beginStreams(_ context: ChannelHandlerContext) {
    passedRequests = 0
    context.fireChannelReadComplete()
  }

  private func passLater(_ context: ChannelHandlerContext) {
    isBehind = true
    context.eventLoop.inLaterTurn { [self] in
      isBehind = false
      guard !isOver else { return }
      pass(context)
      beginStreams(context)
    }
  }

  /// Does what has waited for the pieces.
  private func caughtUp(_ context: ChannelHandlerContext) {
    if isInputClosed {
      isInputClosed = false
      context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
    guard !isOver else { return }
    // The codec's buffer of a block grows by doubling.
    let unfinished = wholeFrames.heldBytes + 2 * intake.blockBytes
    guard session.countUnfinished(unfinished & ~(Self.unfinishedStep - 1)) else { return endFlood(context) }
    if isReadDue {
      isReadDue = false
      context.read()
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) { beginStreams(context) }

  func read(context: ChannelHandlerContext) {
    if isBehind { isReadDue = true } else { context.read() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if isBehind || isPassing, case ChannelEvent.inputClosed? = event as? ChannelEvent {
      isInputClosed = true
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    isOver = true
    context.fireChannelInactive()
    context.completeReadLater()
  }

  /// Passes a piece on. Returns its work, in parts of a `DecodingBudget`.
  private func pass(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) -> Int {
    let passed = intake.read(bytes, now: .now(), listsData: session.holdsBack)
    for ping in passed.pings {
      var frame = context.channel.allocator.buffer(capacity: Self.pingAck.count + 8)
      frame.writeBytes(Self.pingAck)
      frame.writeImmutableBuffer(ping)
      context.writeAndFlush(wrapOutboundOut(.byteBuffer(frame)), promise: nil)
    }
    for stream in passed.data { session.receivedData(on: stream) }
    passedRequests += passed.requests
    for bytes in passed.bytes { context.fireChannelRead(wrapInboundOut(bytes)) }
    switch passed.fault {
    case .flood: endFlood(context)
    case .endedStream: end(with: Self.streamClosed, context)
    case nil: break
    }
    return passed.work
  }

  private func endFlood(_ context: ChannelHandlerContext) { end(with: Self.enhanceYourCalm, context) }

  /// Ends the connection with an error, and the last stream that was taken.
  private func end(with error: UInt32, _ context: ChannelHandlerContext) {
    guard !isOver else { return }
    isOver = true
    goAway(session.lastStream, error, context, promise: nil)
    session.misbehaved()
  }

  private func goAway(
    _ last: Int, _ error: UInt32, _ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?
  ) {
    var frame = context.channel.allocator.buffer(capacity: Self.goAwayHead.count + 8)
    frame.writeBytes(Self.goAwayHead)
    frame.writeInteger(UInt32(last))
    frame.writeInteger(error)
    context.writeAndFlush(wrapOutboundOut(.byteBuffer(frame)), promise: promise)
  }

  func triggerUserOutboundEvent(
    context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
  ) {
    switch event {
    case let end as OrderlyEnd: goAway(end.last, Self.noError, context, promise: promise)
    case is Flood:
      endFlood(context)
      promise?.succeed()
    default: context.triggerUserOutboundEvent(event, promise: promise)
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .byteBuffer(var bytes) = unwrapOutboundIn(data) else {
      return context.write(data, promise: promise)
    }
    guard hasTakenSettings else {
      hasTakenSettings = true
      promise?.succeed()
      return
    }
    let isChanged = correct(&bytes)
    context.write(isChanged ? wrapOutboundOut(.byteBuffer(bytes)) : data, promise: promise)
  }

  /// Counts the frame that begins in the bytes, and corrects SETTINGS and GOAWAY. True if the bytes were changed.
  private func correct(_ bytes: inout ByteBuffer) -> Bool {
    guard payloadLeft == 0 else {
      payloadLeft = max(payloadLeft - bytes.readableBytes, 0)
      return false
    }
    let start = bytes.readerIndex
    guard let word = bytes.getInteger(at: start, as: UInt32.self) else { return false }
    payloadLeft = max(9 + Int(word >> 8) - bytes.readableBytes, 0)
    switch UInt8(truncatingIfNeeded: word) {
    case FrameKind.data, FrameKind.headers:
      intake.sent(Int(word >> 8))
    case FrameKind.goAway where bytes.getInteger(at: start + 13, as: UInt32.self) ?? 0 != 0:
      bytes.setInteger(UInt32(session.lastStream), at: start + 9)
      session.didFail()
      return true
    case FrameKind.settings:
      return announceStreams(in: &bytes, from: start + 9, to: start + 9 + Int(word >> 8))
    default: break
    }
    return false
  }

  /// Puts the number of streams that a client may open into the settings at this place. True if it is one of them.
  private func announceStreams(in bytes: inout ByteBuffer, from start: Int, to end: Int) -> Bool {
    for at in stride(from: start, to: min(end, bytes.writerIndex), by: 6)
    where bytes.getInteger(at: at, as: UInt16.self) == Self.maxConcurrentStreams {
      bytes.setInteger(UInt32(session.downstream.limits.http2MaxStreams), at: at + 2)
      return true
    }
    return false
  }
}
