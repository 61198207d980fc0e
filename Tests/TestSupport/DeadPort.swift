import Glibc

/// A port of loopback that nobody serves, kept from others for as long as this lives.
package final class DeadPort: Sendable {
  package let port: Int
  private let sockets: [Int32]

  private init(port: Int, sockets: [Int32]) {
    self.port = port
    self.sockets = sockets
  }

  deinit { for socket in sockets { close(socket) } }

  /// Connects to it are refused.
  package static func refusing() throws -> DeadPort {
    let (descriptor, port) = try BoundSocket.make(.loopback)
    return DeadPort(port: port, sockets: [descriptor])
  }

  /// Its accept queue is full: connects to it hang.
  package static func hanging() throws -> DeadPort {
    let (listener, port) = try BoundSocket.make(.loopback)
    guard listen(listener, 0) == 0 else { throw RawServerError(call: "listen", code: errno) }
    let callers = try (0..<4).map { _ in try BoundSocket.startConnecting(to: port) }
    return DeadPort(port: port, sockets: [listener] + callers)
  }
}
