import NIOCore
import NIOHTTP1
import NIOPosix

/// A real HTTP/1.1 backend inside the tests that keeps every request it ran, and responds as a test scripts.
///
/// By default it creates an order: 201 with the number of the request, so that no two runs respond alike.
package final class OrdersBackend: Sendable {
  /// The requests that it has seen.
  package struct Log: Sendable {
    /// Every request that came whole, in order: each has been run.
    package var requests: [BackendRequest] = []
    /// The number of heads that have come.
    package var begun = 0
    package var connections = 0
    /// Bytes of large bodies that the kernel has taken.
    package var sent = 0
  }

  package typealias Script = @Sendable (BackendRequest) -> Reply

  package let log = Watched(Log())
  /// The scripts by path; the script's request has its number, and its body unless it responds at the head.
  private let scripts = Watched<[String: Script]>([:])
  private let earlyScripts = Watched<[String: Script]>([:])
  package let port: Int
  private let path: String?
  private let listener = Watched<(any Channel)?>(nil)
  private let open = Watched<[ObjectIdentifier: any Channel]>([:])

  /// - Parameters:
  ///   - port: where it will listen on the loopback address.
  ///   - path: of a unix socket, where it will listen instead.
  package init(port: Int = FreePort.find(), path: String? = nil) {
    self.port = port
    self.path = path
  }

  /// Starts to listen.
  package func start() async throws {
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 1024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: path == nil ? 1 : 0)
      .childChannelOption(.allowRemoteHalfClosure, value: false)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          self.accept(channel)
          let decoder = ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes))
          let number = self.log.withValue { log in
            log.connections += 1
            return log.connections
          }
          try channel.pipeline.syncOperations.addHandlers(
            decoder, BackendConnection(backend: self, number: number))
        }
      }
    let channel =
      if let path {
        try await bootstrap.bind(unixDomainSocketPath: path).get()
      } else {
        try await bootstrap.bind(host: "127.0.0.1", port: port).get()
      }
    listener.withValue { $0 = channel }
  }

  /// Stops listening and cuts every connection.
  package func stop() async throws {
    let channel = listener.withValue { listener in
      defer { listener = nil }
      return listener
    }
    try? await channel?.close()
    for channel in open.value.values { try? await channel.close() }
  }

  /// Sets the script of requests to `path`.
  package func on(_ path: String, _ script: @escaping Script) {
    scripts.withValue { $0[path] = script }
  }

  /// As `on`, but responds at the request's head, before its body was read.
  package func onHead(_ path: String, _ script: @escaping Script) {
    earlyScripts.withValue { $0[path] = script }
  }

  /// Responds to `path` with each of these in turn, and then with the last of them.
  package func on(_ path: String, inTurn replies: [Reply]) {
    let next = Watched(0)
    on(path) { _ in
      next.withValue { index in
        defer { index += 1 }
        return replies[min(index, replies.count - 1)]
      }
    }
  }

  /// Every request that was run so far.
  package var requests: [BackendRequest] { log.value.requests }

  /// The number of requests with this `Idempotency-Key` that were run.
  package func runs(of key: String) -> Int {
    requests.count { $0["Idempotency-Key"] == key }
  }

  /// Waits until so many requests have been run in all; the requests.
  @discardableResult
  package func arrived(_ count: Int, within span: Duration = .seconds(20)) async throws -> [BackendRequest] {
    try await log.until("request \(count) at the backend", within: span) { log in
      log.requests.count >= count ? log.requests : nil
    }
  }

  /// Waits until nobody takes more of the large bodies that it sends; the number of their bytes that were taken.
  package func stalled() async throws -> Int {
    try await log.until("bytes of a large body") { $0.sent > 0 ? true : nil }
    var before = -1
    while before != log.value.sent {
      before = log.value.sent
      // No event announces that nothing happens.
      try await Task.sleep(for: .milliseconds(500))
    }
    return before
  }

  private func accept(_ channel: any Channel) {
    let id = ObjectIdentifier(channel)
    open.withValue { $0[id] = channel }
    channel.closeFuture.whenComplete { _ in self.open.withValue { $0[id] = nil } }
  }

  func earlyReply(to request: BackendRequest) -> Reply? {
    log.withValue { $0.begun += 1 }
    return earlyScripts.value[request.path]?(request)
  }

  func reply(to request: BackendRequest) -> Reply {
    let request = log.withValue { log in
      var request = request
      request.number = log.requests.count + 1
      log.requests.append(request)
      return request
    }
    if let script = scripts.value[request.path] { return script(request) }
    return Reply(body: #"{"order":\#(request.number)}"#)
  }
}
