import NIOCore

/// Stands between the codec and the socket, and mends two things that the codec does: it counts PINGs that a client may
/// send for nothing (`PingAllowance`), and where it ends a connection it does not say which streams were taken.
///
/// RFC 9113, section 6.8, lets a client repeat whatever lies above the last stream of a GOAWAY, POST included, and the
/// codec announces 0 to who misbehaves.
final class FrameGuard: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  private enum Kind {
    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let goAway: UInt8 = 7
  }

  private static let pingAck: [UInt8] = [0, 0, 8, 6, 1, 0, 0, 0, 0]

  private let session: ClientSession
  private var allowance = PingAllowance()
  /// What of the frame that is written is still to come.
  private var payloadLeft = 0

  init(of session: ClientSession) { self.session = session }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let passed = allowance.read(unwrapInboundIn(data))
    for ping in passed.pings {
      var frame = context.channel.allocator.buffer(capacity: Self.pingAck.count + 8)
      frame.writeBytes(Self.pingAck)
      frame.writeImmutableBuffer(ping)
      context.writeAndFlush(wrapOutboundOut(.byteBuffer(frame)), promise: nil)
    }
    for bytes in passed.bytes { context.fireChannelRead(wrapInboundOut(bytes)) }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .byteBuffer(var bytes) = unwrapOutboundIn(data) else {
      return context.write(data, promise: promise)
    }
    let isChanged = look(at: &bytes)
    context.write(isChanged ? wrapOutboundOut(.byteBuffer(bytes)) : data, promise: promise)
  }

  /// True where the frame was changed.
  private func look(at bytes: inout ByteBuffer) -> Bool {
    guard payloadLeft == 0 else {
      payloadLeft = max(payloadLeft - bytes.readableBytes, 0)
      return false
    }
    let start = bytes.readerIndex
    guard let word = bytes.getInteger(at: start, as: UInt32.self) else { return false }
    payloadLeft = max(9 + Int(word >> 8) - bytes.readableBytes, 0)
    switch UInt8(truncatingIfNeeded: word) {
    case Kind.data, Kind.headers:
      allowance.sent()
    case Kind.goAway where bytes.getInteger(at: start + 13, as: UInt32.self) ?? 0 != 0:
      bytes.setInteger(UInt32(session.lastStream), at: start + 9)
      return true
    default: break
    }
    return false
  }
}
