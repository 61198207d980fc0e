import NIOCore
import NIOHTTP2
import Platform
import Wire

/// The state machine of one HTTP/2 connection to a backend: the streams that it takes, and the backend's statements on
/// streams that it did not process. Holds no bytes and performs no I/O.
struct BackendSessionMachine {
  private enum Availability {
    /// Streams may be opened. Followed by `unread`, `reserved` or `leaving`.
    case open
    /// Bytes have arrived that must be read before another stream is opened. Followed by `open` or `leaving`.
    case unread
    /// The connection was made for one exchange alone, which may begin. No other is taken, and the connection closes
    /// when that one ends.
    case reserved
    /// No stream begins any more, and the connection closes when the last one ends. Followed by `reserved` if the
    /// backend left before the connection reached the exchange that it was made for.
    case leaving
  }

  private enum Departure {
    /// The backend has not sent GOAWAY. Followed by `orderly` or `failed`.
    case none
    /// The backend did not process the streams above this one. Followed by `failed`.
    case orderly(lastTaken: HTTP2StreamID)
    /// The backend sent GOAWAY with an error, or one that leaves out a stream on which it had begun to respond. Its
    /// last stream identifier proves nothing: some backends send 0 although streams ran.
    case failed
  }

  /// The number of concurrent streams until the backend states its limit, and at most. NIO itself holds back streams
  /// beyond that. All of them may be reset at once (`maxResets`), and all are lost with the connection.
  private static let defaultStreams = 100
  /// The number of resets after which no more streams begin. Servers end the connection of a client that resets many:
  /// NIO's and Netty's after 200 within 30 s, others sooner in a burst. With the streams that are open by then, no
  /// connection ever carries more than 140.
  static let maxResets = 40
  /// The number of streams after which a connection is replaced. Stream identifiers end at 2^31, and each stream takes
  /// the next odd one.
  private static let lastOpened = 1 << 29
  /// The initial window of a stream and of a connection, until the backend changes it (RFC 9113, section 6.9.2).
  private static let defaultWindow = 65_535

  private var availability = Availability.open
  private var departure = Departure.none
  /// The highest stream on which the backend has begun to respond.
  private var lastResponded = HTTP2StreamID.rootStream
  /// The maximum number of concurrent streams.
  private(set) var maxStreams = defaultStreams
  /// The maximum size of a request's head that the backend accepts, as HTTP/2 counts it; `nil` if it states none.
  private(set) var maxHeadSize: Int?
  /// The number of streams that are open, or about to be.
  private var streams = 0
  private var opened = 0
  /// The number of body bytes that a new stream may send.
  private var streamWindow = defaultWindow
  /// The number of bytes that all streams together may still send. It is a lower bound, because bytes that were passed
  /// to NIO count as sent.
  private var connectionWindow = defaultWindow
  /// The number of streams that were reset.
  private var resets = 0

  init() {}
}

// The choice of a connection for an exchange.
extension BackendSessionMachine {
  /// Whether no stream is open.
  var isResting: Bool { streams == 0 }

  /// Whether exchanges are taken, now or once what has arrived is read.
  var isServing: Bool {
    switch availability {
    case .open, .unread: true
    case .reserved, .leaving: false
    }
  }

  /// Whether one more stream may be opened.
  var hasRoom: Bool {
    guard case .open = availability else { return false }
    return streams < maxStreams && opened < Self.lastOpened
  }

  /// Whether the body of a request can begin to leave.
  var hasWindow: Bool { streamWindow > 0 && connectionWindow > 0 }

  /// Whether no body will ever leave again: bytes that were passed to NIO and never left count as sent for ever.
  var isExhausted: Bool { isResting && connectionWindow <= 0 }

  /// Whether an exchange should wait for this connection, since another one to the same backend would hardly take it
  /// sooner.
  ///
  /// - Parameter needsWindow: Whether the exchange has a body that must be able to leave at once.
  func holdsBack(needsWindow: Bool) -> Bool {
    switch availability {
    case .unread: true
    case .open: needsWindow && streamWindow <= 0
    case .reserved, .leaving: false
    }
  }

  /// Reserves the connection for the one exchange that it was made for.
  mutating func reserve() {
    invariant(isResting, "a connection is reserved that has streams already")
    availability = .reserved
  }
}

// The streams.
extension BackendSessionMachine {
  /// Counts a stream that is being opened.
  mutating func open() {
    invariant(opened < Self.lastOpened, "a stream would get a number beyond the last one")
    streams += 1
    opened += 1
    invariant(streams <= opened, "more streams are open than were ever opened")
  }

  /// Whether a stream that was opened may still begin. The backend may have lowered its limit just now, and NIO would
  /// hold back the head.
  var mayBegin: Bool {
    switch availability {
    case .open, .unread, .reserved: streams <= maxStreams
    case .leaving: false
    }
  }

  /// Decides on a stream that would begin although bytes have arrived that were not read. Returns whether it may. While
  /// no other stream is open, a backend has little to send, so that no stream is opened before they are read; else they
  /// cannot concern this request.
  mutating func mayBeginBesideUnread() -> Bool {
    invariant(streams > 0, "a stream begins that is not counted")
    guard streams == 1 else { return true }
    if case .open = availability { availability = .unread }
    return false
  }

  /// Counts body bytes that are passed to NIO.
  mutating func willSend(_ count: Int) {
    invariant(count >= 0, "a piece of fewer than no bytes")
    connectionWindow -= count
  }

  enum EndAction: Equatable {
    /// Give the free place to the next exchange.
    case offer
    case close
    case none
  }

  /// Handles the end of a stream.
  mutating func ended() -> EndAction {
    invariant(streams > 0, "a stream ends twice")
    streams -= 1
    if isServing { return .offer }
    return isResting ? .close : .none
  }

  /// Counts a stream that is being reset. Returns whether the connection is to be left because of it.
  mutating func willReset() -> Bool {
    resets += 1
    return resets >= Self.maxResets
  }
}

// The backend's frames.
extension BackendSessionMachine {
  /// Handles the backend's settings.
  mutating func adopt(_ settings: HTTP2Settings) {
    for setting in settings {
      if setting.parameter == .maxConcurrentStreams { maxStreams = min(setting.value, Self.defaultStreams) }
      if setting.parameter == .maxHeaderListSize { maxHeadSize = setting.value }
      if setting.parameter == .initialWindowSize { streamWindow = setting.value }
    }
  }

  /// Handles a growth of the connection's window.
  mutating func windowGrew(by increment: Int) { connectionWindow += increment }

  /// Handles the end of a read. Returns whether the connection awaited it.
  mutating func didRead() -> Bool {
    guard case .unread = availability else { return false }
    availability = .open
    return true
  }

  /// Notes that the backend has begun to respond on a stream.
  mutating func didRespond(on stream: HTTP2StreamID) { lastResponded = max(lastResponded, stream) }

  /// Handles a GOAWAY of the backend. `leave` must follow.
  mutating func didReceiveGoAway(last: HTTP2StreamID, isError: Bool) {
    switch departure {
    case _ where isError || last < lastResponded: departure = .failed
    case .none: departure = .orderly(lastTaken: last)
    case .orderly(let lastTaken): departure = .orderly(lastTaken: min(last, lastTaken))
    case .failed: break
    }
  }

  /// Whether the backend has stated that it did not process this stream (RFC 9113, section 6.8).
  func disowns(_ stream: HTTP2StreamID) -> Bool {
    if case .orderly(let lastTaken) = departure { stream > lastTaken } else { false }
  }
}

// The end.
extension BackendSessionMachine {
  /// Takes no more exchanges. Returns false if none were taken before.
  @discardableResult
  mutating func leave() -> Bool {
    guard isServing else { return false }
    availability = .leaving
    return true
  }

  /// Whether the connection is to be closed: it takes no more exchanges, and none is open.
  var isOver: Bool { !isServing && isResting }
}

/// Decides whether a shared connection is still alive, from what is read on it while its streams are open. Its clock
/// ticks once a second.
///
/// A network path that lost its state, or a load balancer that hangs, is silent. Without this check, every stream of
/// the connection, and every later one, would wait for its own time-out.
struct Liveness {
  enum TickAction: Equatable {
    case none
    /// No stream is open: no more ticks are needed until one is opened.
    case rest
    /// A PING is to be sent.
    case ping
    /// The backend has not responded to a PING: the connection is to be closed.
    case giveUp
  }

  /// The seconds of silence before the first PING, and before each further one while only acknowledgements arrive.
  /// Backends of gRPC close a connection on the third PING without cause within five minutes, while a stream may well
  /// be silent for hours.
  private static let pauses = [2, 10, 60, 330]
  /// The number of seconds that a PING may stay without any read. A backend that was frozen for less keeps its streams.
  private static let maxPingSeconds = 10

  private enum State {
    /// No ticks are needed. Followed by `listening`.
    case resting
    /// The clock ticks. Followed by `pinging` or `resting`.
    case listening
    /// The clock ticks, and nothing was read since the last PING. Followed by `listening`.
    case pinging
  }

  private var state = State.resting
  private var silence = 0
  /// The number of PINGs since the last frame of a stream.
  private var pings = 0
  private var lastRead = 0
  private var lastResponses = 0

  /// Whether nothing was read since the last PING. Meanwhile no stream is opened.
  var isPinging: Bool { state == .pinging }

  /// Records that a stream is opened. Returns whether the ticks begin with it.
  mutating func streamOpened() -> Bool {
    guard state == .resting else { return false }
    state = .listening
    return true
  }

  /// Handles the passing of a second.
  ///
  /// - Parameters:
  ///   - reads: The number of reads so far.
  ///   - responses: The number of frames so far that belonged to a stream.
  ///   - hasStreams: Whether a stream is open.
  mutating func ticked(reads: Int, responses: Int, hasStreams: Bool) -> TickAction {
    if reads != lastRead {
      lastRead = reads
      heard()
      if responses != lastResponses { pings = 0 }
      lastResponses = responses
      return hasStreams ? .none : rest()
    }
    guard hasStreams || isPinging else { return rest() }
    silence += 1
    if isPinging { return silence >= Self.maxPingSeconds ? .giveUp : .none }
    guard silence >= Self.pauses[min(pings, Self.pauses.count - 1)] else { return .none }
    willPing(reads: reads)
    return .ping
  }

  private mutating func rest() -> TickAction {
    state = .resting
    silence = 0
    return .rest
  }

  /// Records that a PING is sent.
  mutating func willPing(reads: Int) {
    lastRead = reads
    state = .pinging
    silence = 0
    pings += 1
  }

  /// Records that anything was read.
  mutating func heard() {
    if isPinging { state = .listening }
    silence = 0
  }
}

/// The bytes of a backend on their way to the codec (`HeaderTableLimit`, `WholeFrames`).
final class BackendFrameIntake: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  // A server begins with a frame.
  private var headerTable = HeaderTableLimit(prefaceBytes: 0)
  private var wholeFrames = WholeFrames(prefaceBytes: 0)
  private var isPassing = false
  private var isOver = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    headerTable.apply(to: &bytes)
    wholeFrames.append(bytes)
    // A channel whose write fails reads what is left within that write, and so within what a piece has led to.
    guard !isPassing else { return }
    isPassing = true
    defer { isPassing = false }
    while !isOver, let piece = wholeFrames.next() { context.fireChannelRead(wrapInboundOut(piece)) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    isOver = true
    context.fireChannelInactive()
    context.completeReadLater()
  }
}
