import Glibc
import NIOCore
import Platform

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
  private let socket: Socket
  private let records: TLSRecords?

  /// Creates the access to a channel's socket.
  ///
  /// - Parameter records: The handler that follows the connection's TLS records; `nil` if it is not encrypted.
  init(below channel: any Channel, records: TLSRecords?, generation: Int? = nil) throws {
    socket = try Socket(below: channel)
    self.records = records
    self.generation = generation
  }

  var isEncrypted: Bool { records != nil }

  var readState: ReadState {
    switch socket.arrival {
    case .bytes: .unread
    case .end: .ended
    case .none: records?.isMidRecord == true ? .unread : .quiet
    }
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

extension BackendSocket {
  /// The end of a connection at which its bytes arrive.
  private enum Socket {
    case descriptor(NIOBSDSocket.Handle)
    case channel(any DescriptorlessChannel)

    init(below channel: any Channel) throws {
      let handlers = channel.pipeline.syncOperations
      if let descriptor = try handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, { $0 }) {
        self = .descriptor(descriptor)
      } else if let channel = channel as? any DescriptorlessChannel {
        self = .channel(channel)
      } else {
        throw ChannelError.operationUnsupported
      }
    }

    var arrival: SocketArrival {
      switch self {
      case .channel(let channel): return channel.arrival
      case .descriptor(let descriptor):
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        if count > 0 { return .bytes }
        return count < 0 && errno == EAGAIN ? .none : .end
      }
    }
  }
}
