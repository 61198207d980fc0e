import NIOCore
import Wire

/// The frames of a client on their way to the codec: charges them to a budget, and takes out the PINGs that a client
/// may send without charge.
///
/// The codec counts all PINGs as a flood, but gRPC estimates its bandwidth with one for each DATA that it gets. Each
/// frame of DATA or HEADERS that was sent allows one PING. Pure: bytes come in and go out.
///
/// Behind the client's first SETTINGS it puts in an acknowledgement of the codec's first ones, which no client gets
/// (`FrameGuard`).
///
/// It gets whole frames, and parts of DATA (`WholeFrames`); of a frame that is too large all that has come, which the
/// codec refuses by its head.
struct FrameIntake {
  /// The result of a read.
  struct Passed {
    /// The bytes for the codec, in order.
    var bytes: [ByteBuffer] = []
    /// The payloads of PINGs to be acknowledged.
    var pings: [ByteBuffer] = []
    /// The work of the frames that begin in the bytes, in parts (`DecodingBudget`).
    var work = 0
    /// The number of HEADERS among the frames.
    var requests = 0
    /// The stream of each frame of DATA, or part of one, in the bytes.
    var data: [UInt32] = []
    /// The reason why the connection must end. The bytes end before the frame that gave it.
    var fault: Fault?
  }

  enum Fault {
    /// The budget is exceeded.
    case flood
    /// A stream that the client has ended gets another HEADERS. The codec resets it without a word to the client while
    /// its request is new (RFC 9113, section 5.1, asks for STREAM_CLOSED).
    case endedStream
  }

  /// The connection preface of a client (RFC 9113, section 3.4), its magic alone.
  static let magicBytes = 24
  private static let settingsAck = ByteBuffer(bytes: [0, 0, 0, FrameKind.settings, 1, 0, 0, 0, 0])
  /// The maximum number of PINGs that sent frames allow, so that a client cannot save up for a flood.
  private static let maxPingCredit = 100

  private var budget: FrameBudget
  private var pingCredit = 0
  /// The number of bytes that are still to come before the next frame: of the magic, or of the frame under way.
  private var skipped = magicBytes
  /// The stream of the frame under way if that is DATA.
  private var dataStream: UInt32?
  /// Whether the SETTINGS have come with which every client begins.
  private var hasBegun = false
  /// Whether a block of fields is not whole yet: nothing may stand between its frames.
  private var isInBlock = false
  /// The streams that the client ended last, and the place of the next one: as many as may be open, and some more.
  private var ended: [UInt32] = []
  private var nextEnded = 0
  private let maxEnded: Int
  /// The highest stream with HEADERS.
  private var lastStream: UInt32 = 0
  /// The bytes of that block.
  private(set) var blockBytes = 0

  /// - Parameter maxStreams: The number of streams that may be open.
  init(budget: FrameBudget, maxStreams: Int) {
    self.budget = budget
    maxEnded = maxStreams + 28
  }

  /// Credits a frame of DATA or HEADERS that was sent, with a payload of `bytes` bytes.
  mutating func sent(_ bytes: Int) {
    pingCredit = min(pingCredit + 1, Self.maxPingCredit)
    budget.sent(bytes)
  }

  /// Reads a piece.
  ///
  /// - Parameter listsData: Whether the streams of DATA are wanted.
  mutating func read(_ bytes: ByteBuffer, now: NIODeadline, listsData: Bool = false) -> Passed {
    var bytes = bytes
    var passed = Passed()
    var at = bytes.readerIndex + min(skipped, bytes.readableBytes)
    skipped -= at - bytes.readerIndex
    if listsData, at > bytes.readerIndex, let dataStream { passed.data.append(dataStream) }
    while let frame = Frame(bytes, at: at) {
      if reopens(frame) {
        Self.pass(bytes, upTo: at, to: &passed)
        passed.fault = .endedStream
        return passed
      }
      if pingCredit > 0, hasBegun, !isInBlock, frame.isPing, frame.end <= bytes.writerIndex {
        takePing(frame, from: &bytes, at: &at, to: &passed)
      } else if budget.take(frame.kind, now: now) {
        let isRequest = frame.kind == FrameKind.headers
        passed.requests += isRequest ? 1 : 0
        passed.work += isRequest ? DecodingBudget.partsOfRequest : 1
        dataStream = frame.kind == FrameKind.data ? frame.stream : nil
        if listsData, let dataStream { passed.data.append(dataStream) }
        at = min(frame.end, bytes.writerIndex)
        skipped = frame.end - at
        if !hasBegun, frame.isSettings { acknowledge(&bytes, at: at, to: &passed) }
        begin(frame)
      } else {
        Self.pass(bytes, upTo: at, to: &passed)
        passed.fault = .flood
        return passed
      }
    }
    Self.pass(bytes, upTo: bytes.writerIndex, to: &passed)
    return passed
  }

  /// Takes a PING frame out of the bytes, which is replied to here.
  private mutating func takePing(
    _ frame: Frame, from bytes: inout ByteBuffer, at: inout Int, to passed: inout Passed
  ) {
    Self.pass(bytes, upTo: at, to: &passed)
    if let ping = bytes.getSlice(at: frame.end - frame.length, length: frame.length) {
      passed.pings.append(ping)
    }
    at = frame.end
    bytes.moveReaderIndex(to: at)
    pingCredit -= 1
  }

  /// Puts in the acknowledgement.
  private mutating func acknowledge(_ bytes: inout ByteBuffer, at: Int, to passed: inout Passed) {
    Self.pass(bytes, upTo: at, to: &passed)
    passed.bytes.append(Self.settingsAck)
    bytes.moveReaderIndex(to: at)
  }

  private mutating func begin(_ frame: Frame) {
    hasBegun = true
    if frame.kind == FrameKind.headers || frame.kind == FrameKind.continuation {
      isInBlock = frame.flags & 0x4 == 0
      blockBytes = isInBlock ? blockBytes + frame.length : 0
    }
    if frame.kind == FrameKind.headers { lastStream = max(lastStream, frame.stream) }
    if frame.endsStream { noteEnd(of: frame.stream) }
  }

  private mutating func noteEnd(of stream: UInt32) {
    if ended.count < maxEnded { ended.append(stream) } else { ended[nextEnded] = stream }
    nextEnded = (nextEnded + 1) % maxEnded
  }

  /// Whether the frame begins a block of fields on a stream that the client has ended.
  private func reopens(_ frame: Frame) -> Bool {
    frame.kind == FrameKind.headers && !isInBlock && frame.stream <= lastStream
      && ended.contains(frame.stream)
  }

  private static func pass(_ bytes: ByteBuffer, upTo end: Int, to passed: inout Passed) {
    let count = end - bytes.readerIndex
    invariant(count >= 0, "bytes of a frame are passed twice")
    if count > 0, let piece = bytes.getSlice(at: bytes.readerIndex, length: count) {
      passed.bytes.append(piece)
    }
  }

  private struct Frame {
    let length: Int
    let kind: UInt8
    let flags: UInt8
    let stream: UInt32
    /// The index behind it.
    let end: Int

    /// `nil` if its head is not all there.
    init?(_ bytes: ByteBuffer, at index: Int) {
      guard let word = bytes.getInteger(at: index, as: UInt32.self),
        let flags = bytes.getInteger(at: index + 4, as: UInt8.self),
        let stream = bytes.getInteger(at: index + 5, as: UInt32.self), index + 9 <= bytes.writerIndex
      else { return nil }
      length = Int(word >> 8)
      kind = UInt8(truncatingIfNeeded: word)
      self.flags = flags
      end = index + 9 + length
      // The first bit is reserved.
      self.stream = stream & 0x7FFF_FFFF
    }

    /// Whether its sender sends nothing more on the stream.
    var endsStream: Bool { (kind == FrameKind.headers || kind == FrameKind.data) && flags & 1 != 0 }

    /// Whether it is SETTINGS, and no acknowledgement.
    var isSettings: Bool { kind == FrameKind.settings && flags & 1 == 0 && stream == 0 }

    /// Whether it is a valid PING that asks for an acknowledgement.
    var isPing: Bool { kind == FrameKind.ping && flags & 1 == 0 && length == 8 && stream == 0 }
  }
}

/// Holds flushes back while a read is handled, so that the responses of many streams leave in one write.
final class FlushGate: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = IOData

  private let session: ClientSession
  private var isReading = false {
    didSet { session.holdsFlushes = isReading }
  }
  private var isDue = false

  init(of session: ClientSession) { self.session = session }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    isReading = true
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    context.fireChannelReadComplete()
    isReading = false
    release(context)
    session.countUnread()
  }

  func flush(context: ChannelHandlerContext) {
    isDue = true
    if !isReading { release(context) }
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    release(context)
    context.close(mode: mode, promise: promise)
  }

  private func release(_ context: ChannelHandlerContext) {
    guard isDue else { return }
    isDue = false
    context.flush()
  }
}

/// The types of HTTP/2 frames that are distinguished between the codec and the socket (RFC 9113, section 6).
enum FrameKind {
  static let data: UInt8 = 0
  static let headers: UInt8 = 1
  static let resetStream: UInt8 = 3
  static let settings: UInt8 = 4
  static let ping: UInt8 = 6
  static let goAway: UInt8 = 7
  static let continuation: UInt8 = 9
}

/// The budget of one connection for frames that advance no request: WINDOW_UPDATE, SETTINGS, PING, PRIORITY,
/// PRIORITY_UPDATE, ALTSVC, ORIGIN, GOAWAY and those of unknown types. Each costs time of the event loop, and the codec
/// bounds only some of them.
///
/// Clients send such frames about the frames that they get and about the requests that they make: both give credit.
/// Beyond its credit a client may send `max` at once, and so many again within 30 s. DATA, HEADERS, CONTINUATION and
/// RST_STREAM are free here: they belong to requests, and the codec bounds those that do not. Pure: time comes in.
struct FrameBudget {
  /// A WINDOW_UPDATE for the stream and one for the connection.
  private static let creditOfFrame = 2
  /// Clients that read in pieces announce a large frame in several parts; those of Go announce at least 4 KiB at once,
  /// in one frame for the stream and one for the connection.
  private static let bytesOfCredit = 2 << 10
  /// PRIORITY_UPDATE (RFC 9218), PRIORITY, and WINDOW_UPDATEs that open the window of the new stream.
  private static let creditOfRequest = 4
  /// The credit for 80 MiB that a client got and has not read yet.
  private static let maxCredit = 50_000

  private var credit = 0
  private var allowance: Allowance

  /// - Parameter max: The number of frames beyond the credit.
  init(max: Int) { allowance = Allowance(max) }

  /// Credits a frame of DATA or HEADERS that was sent, with a payload of `bytes` bytes.
  mutating func sent(_ bytes: Int) { add(Self.creditOfFrame + bytes / Self.bytesOfCredit) }

  /// Counts a frame of this type that came. Returns whether it may be handled.
  mutating func take(_ kind: UInt8, now: NIODeadline) -> Bool {
    switch kind {
    case FrameKind.headers:
      add(Self.creditOfRequest)
      return true
    case FrameKind.data, FrameKind.continuation, FrameKind.resetStream: return true
    default: return takeOverhead(now)
    }
  }

  private mutating func takeOverhead(_ now: NIODeadline) -> Bool {
    if credit > 0 {
      credit -= 1
      return true
    }
    return allowance.take(now)
  }

  private mutating func add(_ more: Int) { credit = min(credit + more, Self.maxCredit) }
}

/// A number of things that a connection may do at once, and again within 30 s. Pure: time comes in.
struct Allowance {
  /// The time in which it is full again.
  static let window = TimeAmount.seconds(30)

  private let max: Double
  private var left: Double
  private var filledAt: NIODeadline?

  /// - Parameter initial: The number at the beginning, where it is larger than `max`.
  init(_ max: Int, initial: Int = 0) {
    self.max = Double(max)
    left = Double(Swift.max(max, initial))
  }

  /// Takes one. False if none is left.
  mutating func take(_ now: NIODeadline) -> Bool {
    let passed = filledAt.map { (now - $0).nanoseconds } ?? 0
    filledAt = now
    let filled = min(left + Double(passed) / Double(Self.window.nanoseconds) * max, max)
    left = Swift.max(left, filled)
    guard left >= 1 else { return false }
    left -= 1
    return true
  }
}
