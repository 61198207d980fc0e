import Idempotency
import Logging
import Loop
import NIOCore
import NIOPosix
import Telemetry

/// The client's side: listeners, and the workers among which their connections are shared out.
package final class ProxyServer<Store: RecordStore, Backend: Upstream>: Sendable {
  /// Where clients connect.
  package enum Address: Sendable, CustomStringConvertible {
    case tcp(host: String, port: Int)
    case unix(path: String)

    package var description: String {
      switch self {
      case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
      case .unix(let path): "unix:\(path)"
      }
    }
  }

  private let workers: [Worker<Store, Backend>]
  private let environment: ProxyEnvironment
  private let group: MultiThreadedEventLoopGroup

  /// - Parameters:
  ///   - workers: one for each event loop of the group.
  package init(
    workers: [Worker<Store, Backend>], environment: ProxyEnvironment, group: MultiThreadedEventLoopGroup
  ) {
    self.workers = workers
    self.environment = environment
    self.group = group
  }

  /// Listens; throws where the address cannot be had.
  package func listen(on address: Address) async throws -> any Channel {
    let bootstrap = ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 4096)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      // One read a wake-up: a request is mostly one read, and asking again costs a system call.
      .childChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(
        .recvAllocator,
        value: AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 4096, maximum: 64 << 10)
      )
      .childChannelInitializer { [self] channel in
        channel.eventLoop.makeCompletedFuture { try accept(channel) }
      }
    switch address {
    case .tcp(let host, let port):
      return try await bootstrap.childChannelOption(.tcpOption(.tcp_nodelay), value: 1).bind(
        host: host, port: port
      ).get()
    case .unix(let path):
      return try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
    }
  }

  private func accept(_ channel: any Channel) throws {
    environment.counters.add(.connections)
    guard environment.counters.change(.openConnections, by: 1) <= environment.limits.maxConnections,
      !environment.isDraining
    else {
      environment.counters.change(.openConnections, by: -1)
      environment.counters.add(.connectionsRefused)
      channel.writeAndFlush(AnswerEncoder.problem(.overloaded(.busy, retryAfter: 1000), isClosing: true))
        .whenComplete { _ in
          channel.close(promise: nil)
        }
      return
    }
    guard let worker = workers.first(where: { $0.context.loop === channel.eventLoop }) else {
      preconditionFailure("ProxyServer: a connection on a loop without worker")
    }
    let peer = ClientPeer(address: channel.remoteAddress?.ipAddress ?? "")
    try channel.pipeline.syncOperations.addHandler(ClientConnection(worker: worker, peer: peer))
  }

  /// Closes idle connections; the others close after their answers. Called once nothing more is accepted.
  package func drain() async {
    environment.drain()
    for worker in workers {
      try? await worker.context.loop.submit { worker.drain() }.get()
    }
  }

  /// Whether every exchange has ended.
  package func isIdle() async -> Bool {
    for worker in workers {
      let isIdle = try? await worker.context.loop.submit { worker.isIdle }.get()
      if isIdle == false { return false }
    }
    return environment.counters[.inFlight] == 0
  }

  /// Says of what could not be finished that its outcome is unknown.
  package func abandon() async {
    await withTaskGroup { group in
      for worker in workers {
        group.addTask(executorPreference: worker.context.executor) { await worker.abandon() }
      }
    }
  }
}
