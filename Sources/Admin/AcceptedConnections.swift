import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Synchronization

/// The accepted connections of the listener: Hummingbird's own, except that one is closed if nobody takes it.
///
/// When the process ends because a service has failed, the listener is cancelled, and drops what it has accepted and
/// not handed on. NIO stops the process if a `NIOAsyncChannel` is dropped that nobody has closed.
struct AcceptedConnections: ServerChildChannel {
  let http1: HTTP1Channel

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection> {
    http1.setup(channel: channel, logger: logger).map(Connection.init)
  }

  func handle(value connection: Connection, logger: Logger) async {
    await http1.handle(value: connection.take(), logger: logger)
  }

  final class Connection: ServerChildChannelValue {
    private let http1: HTTP1Channel.Value
    private let isTaken = Atomic(false)

    init(_ http1: HTTP1Channel.Value) { self.http1 = http1 }

    var channel: any Channel { http1.channel }

    /// Returns the connection to the one who serves and closes it.
    func take() -> HTTP1Channel.Value {
      isTaken.store(true, ordering: .relaxed)
      return http1
    }

    deinit {
      guard !isTaken.load(ordering: .relaxed) else { return }
      Task { [http1] in try await http1.executeThenClose { _, _ in } }
    }
  }
}
