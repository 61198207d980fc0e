import Glibc
import NIOCore

/// The client's side of a Unix socket.
enum UnixSocket {
  /// Returns a connected descriptor. A Unix socket connects at once or not at all.
  static func connect(to path: String) throws -> NIOBSDSocket.Handle {
    let address = try SocketAddress(unixDomainSocketPath: path)
    // Non-blocking, in case the backend's queue is full.
    let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    let descriptor = socket(AF_UNIX, Int32(type), 0)
    guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
    let code = address.withSockAddr { Glibc.connect(descriptor, $0, socklen_t($1)) }
    guard code == 0 else {
      let error = IOError(errnoCode: errno, reason: "connect")
      close(descriptor)
      throw error
    }
    return descriptor
  }
}
