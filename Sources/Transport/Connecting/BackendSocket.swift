import Glibc
import NIOCore

/// The socket below a connection, asked for what NIO hears only in its next turn, which may be too late. To be looked
/// at while its channel is active: that owns it.
struct BackendSocket {
  enum Standing: Equatable {
    /// Nothing has come that was not read.
    case quiet
    /// Bytes have come that nobody has read, or half a record of TLS that nobody could.
    case unread
    /// The backend has ended the connection.
    case ended
  }

  private let descriptor: NIOBSDSocket.Handle
  private let records: TLSRecords?

  /// - Parameter records: those of the connection, where it is encrypted.
  init(below channel: any Channel, records: TLSRecords?) throws {
    let handlers = channel.pipeline.syncOperations
    guard let descriptor = try handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, { $0 })
    else { throw ChannelError.operationUnsupported }
    self.descriptor = descriptor
    self.records = records
  }

  var isEncrypted: Bool { records != nil }

  var standing: Standing {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
    if count > 0 { return .unread }
    guard count < 0, errno == EAGAIN else { return .ended }
    return records?.isMidRecord == true ? .unread : .quiet
  }

  /// Closes the connection at once: TLS would take its leave, and wait for the backend's.
  func cut(_ context: ChannelHandlerContext) {
    if let records { records.cut() } else { context.close(promise: nil) }
  }

  /// Calls back after each read of an encrypted connection, also where nothing but TLS's own was read.
  func onEncryptedRead(_ act: @escaping () -> Void) { records?.didRead = act }
}
