import NIOCore

/// The socket below a connection, as the kernel knows it: NIO hears of a backend's end in its next turn, which may be
/// too late.
struct BackendSocket {
  /// Its unix socket, where it is one.
  let unix: UnixSocket?

  /// Whether the kernel has not heard the backend's end of it yet.
  ///
  /// - Parameter isShared: whether the backend may have something to say before it is asked.
  func isEstablished(_ channel: any Channel, isShared: Bool = false) -> Bool {
    if let unix { return isShared ? unix.isOpen : unix.isQuiet }
    guard let start = try? channel.syncOptions?.getOption(.tcpOption(.tcp_info)) else { return true }
    // The first byte of tcp_info is the state, and 1 is TCP_ESTABLISHED.
    return withUnsafeBytes(of: start) { $0[0] } == 1
  }
}
