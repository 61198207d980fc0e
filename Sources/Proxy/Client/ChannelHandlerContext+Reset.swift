import Glibc
import NIOCore
import NIOSSL

extension ChannelHandlerContext {
  /// Ends a client's connection by a reset: the client must not take a cut response for a whole one, and the kernel must
  /// not keep for long what a client does not read.
  func reset() {
    if let socket = channel as? any SocketOptionProvider {
      _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }
    // Past TLS, which would end in order.
    let secure = try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
    (secure ?? self).close(promise: nil)
  }
}
