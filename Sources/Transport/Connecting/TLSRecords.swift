import NIOCore

/// A handler below TLS that follows the record boundaries in the backend's bytes.
///
/// It sees what the handlers above TLS do not: a session ticket, which TLS consumes silently, and an incomplete record,
/// which TLS holds back silently.
final class TLSRecords: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  /// The length of a record's header: type, version and length (RFC 8446, section 5.1).
  private static let headerBytes = 5

  /// Called after each read. Set by the connection above TLS.
  var didRead: (() -> Void)?
  private var context: ChannelHandlerContext?
  /// The number of bytes of the current record that are still to come.
  private var bodyLeft = 0
  /// The number of bytes of the current header that have arrived.
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
