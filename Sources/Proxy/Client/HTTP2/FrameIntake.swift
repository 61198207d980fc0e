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
