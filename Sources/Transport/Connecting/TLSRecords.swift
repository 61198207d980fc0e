import NIOCore

/// The records of TLS that a backend sends, seen from below TLS: a session ticket is read and dropped there without a
/// word, and half a record is held back without one.
final class TLSRecords: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  /// A record's type, version and length (RFC 8446, section 5.1).
  private static let headerBytes = 5

  /// Set by the connection above.
  var didRead: (() -> Void)?
  private var context: ChannelHandlerContext?
  /// The bytes of the record under way that are still to come.
  private var bodyLeft = 0
  /// The bytes of a header that have come.
  private var headerRead = 0
  private var length = 0

  /// Whether a record has begun and not ended.
  var isMidRecord: Bool { bodyLeft > 0 || headerRead > 0 }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func cut() { context?.close(promise: nil) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    unwrapInboundIn(data).withUnsafeReadableBytes { take($0) }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    context.fireChannelReadComplete()
    didRead?()
  }

  func take(_ bytes: UnsafeRawBufferPointer) {
    var at = 0
    while at < bytes.count {
      if bodyLeft > 0 {
        let taken = min(bodyLeft, bytes.count - at)
        bodyLeft -= taken
        at += taken
        continue
      }
      if headerRead >= 3 { length = length << 8 | Int(bytes[at]) }
      headerRead += 1
      at += 1
      guard headerRead == Self.headerBytes else { continue }
      bodyLeft = length
      headerRead = 0
      length = 0
    }
  }
}
