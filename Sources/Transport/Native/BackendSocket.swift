// The sockets' constants stand in headers of both, and a whole module's build finds them in the first that it read.
import CCurl
import Glibc
import NIOCore

/// The socket below a connection, asked for what NIO hears only in its next turn, which may be too late. To be looked
/// at while its channel is active: that owns it.
struct BackendSocket {
  private let descriptor: NIOBSDSocket.Handle

  init(below channel: any Channel) throws {
    let handlers = channel.pipeline.syncOperations
    guard let descriptor = try handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, { $0 })
    else { throw ChannelError.operationUnsupported }
    self.descriptor = descriptor
  }

  /// Whether nothing has come that nobody read: neither bytes nor the end.
  var isQuiet: Bool { peek() < 0 && errno == EAGAIN }

  /// Whether what comes next is not the end, as far as is known.
  var isOpen: Bool {
    let count = peek()
    return count > 0 || count < 0 && errno == EAGAIN
  }

  private func peek() -> Int {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
  }
}
