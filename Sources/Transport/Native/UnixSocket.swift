// The sockets' constants stand in headers of both, and a whole module's build finds them in the first that it read.
import CCurl
import Glibc
import NIOCore

/// A unix socket's descriptor, which its channel owns and closes: to be looked at only while that is active.
struct UnixSocket {
  let descriptor: Int32

  /// Connects, which a unix socket does at once or not at all.
  init(path: String) throws {
    let address = try SocketAddress(unixDomainSocketPath: path)
    // Without waiting where the backend's queue is full.
    let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    descriptor = socket(AF_UNIX, Int32(type), 0)
    guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
    let code = address.withSockAddr { connect(descriptor, $0, socklen_t($1)) }
    guard code == 0 else {
      let error = IOError(errnoCode: errno, reason: "connect")
      close(descriptor)
      throw error
    }
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
