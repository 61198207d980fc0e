import Glibc
import NIOCore

/// Direct access to a connection's socket, for facts that NIO learns only in its next turn, which may be too late.
///
/// Use it only while the channel is active, because the channel owns the descriptor.
struct BackendSocket {
  enum ReadState: Equatable {
    /// No unread bytes have arrived.
    case quiet
    /// Bytes have arrived that were not read, or a part of a TLS record that cannot be read yet.
    case unread
    /// The backend has closed the connection.
    case ended
  }

  /// The generation of the TLS files by which the connection was made; `nil` if it is not encrypted.
  let generation: Int?
  private let descriptor: NIOBSDSocket.Handle
  private let records: TLSRecords?

  /// Creates the access to a channel's socket.
  ///
  /// - Parameter records: The handler that follows the connection's TLS records; `nil` if it is not encrypted.
  init(below channel: any Channel, records: TLSRecords?, generation: Int? = nil) throws {
    let handlers = channel.pipeline.syncOperations
    guard let descriptor = try handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, { $0 })
    else { throw ChannelError.operationUnsupported }
    self.descriptor = descriptor
    self.records = records
    self.generation = generation
  }

  var isEncrypted: Bool { records != nil }

  var readState: ReadState {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
    if count > 0 { return .unread }
    guard count < 0, errno == EAGAIN else { return .ended }
    return records?.isMidRecord == true ? .unread : .quiet
  }

  /// Closes the connection at once. Under TLS, it bypasses the closing handshake, which would wait for the backend.
  ///
  /// - Parameter discardsUnsent: Whether the kernel drops what the backend has not taken yet, and resets the
  ///   connection. Otherwise a backend that stood still may read the request long after it was given up.
  func cut(_ context: ChannelHandlerContext, discardsUnsent: Bool) {
    if discardsUnsent, let channel = context.channel as? any SocketOptionProvider {
      _ = channel.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }
    if let records { records.cut() } else { context.close(promise: nil) }
  }

  /// Calls `act` after each read of an encrypted connection, even if it brought only TLS's own messages.
  func didReadEncrypted(_ act: @escaping () -> Void) { records?.didRead = act }
}
