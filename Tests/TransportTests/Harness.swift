import Idempotency
import Logging
import NIOCore
import NIOPosix
import Platform
import TestSupport
import Testing
import Wire

@testable import Transport

/// One event loop with its upstream, for one test.
final class Harness: Sendable {
  let context: EventLoopContext
  let upstream: HTTPUpstream
  private let group: MultiThreadedEventLoopGroup

  private init(sockets: any Sockets) {
    group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    context = EventLoopContext(loop: group.next(), sockets: sockets)
    upstream = HTTPUpstream(context: context, loops: 1, logger: Logger(label: "test"))
  }

  /// Runs a test on the loop, and takes everything down after it.
  static func run<T: Sendable>(
    sockets: any Sockets = SystemSockets.shared, _ body: @escaping @Sendable (Harness) async throws -> T
  ) async throws -> T {
    let harness = Harness(sockets: sockets)
    let result: Result<T, any Error>
    do { result = .success(try await harness.onLoop { try await body(harness) }) } catch {
      result = .failure(error)
    }
    try await harness.context.loop.submit { harness.upstream.shutdown() }.get()
    try await harness.group.shutdownGracefully()
    return try result.get()
  }

  func onLoop<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async throws -> T {
    try await Task(executorPreference: context.executor) { try await body() }.value
  }
}

extension UpstreamSettings {
  /// With times that a busy machine does not exceed. Those that a test is about are its own.
  static func loopback(_ port: Int) -> UpstreamSettings {
    var settings = UpstreamSettings(name: "backend", address: .tcp(host: "127.0.0.1", port: port))
    settings.connectTimeout = .seconds(20)
    settings.idleTimeout = .seconds(60)
    return settings
  }
}

extension UpstreamRequest {
  /// A request to a server of the test.
  static func to(
    _ server: RawServer, _ method: String = "GET", _ target: String = "/", fields: String = "Host: test\r\n",
    body: RequestBody = .none, permit: SendPermit? = nil
  ) -> UpstreamRequest {
    .to(.loopback(server.port), method, target, fields: fields, body: body, permit: permit)
  }

  static func to(
    _ upstream: UpstreamSettings, _ method: String = "GET", _ target: String = "/",
    fields: String = "Host: test\r\n", body: RequestBody = .none, permit: SendPermit? = nil,
    caller: Int? = nil
  ) -> UpstreamRequest {
    UpstreamRequest(
      upstream: upstream, method: method, target: target, fields: ByteBuffer(string: fields),
      body: body, permit: permit, caller: caller)
  }
}

extension SendPermit {
  static func fresh() -> SendPermit { SendPermit(requestedAt: .now, lease: .seconds(30)) }
}

/// A response as a test compares it.
struct ReceivedResponse: Equatable {
  var status: Int
  var body: String
  var trailers = ""
}

extension HTTPExchange {
  /// Reads the whole response and gives the connection back.
  func finish(within span: Milliseconds = .seconds(20)) async throws -> ReceivedResponse {
    defer { close() }
    let head = try await head(within: span)
    guard case .whole(let body) = try await collect(upTo: 1 << 24, within: span) else {
      return ReceivedResponse(status: head.head.status, body: "too large")
    }
    return ReceivedResponse(
      status: head.head.status, body: String(buffer: body), trailers: String(buffer: trailers))
  }

  /// The failure of the exchange.
  func failure(within span: Milliseconds = .seconds(20)) async -> UpstreamFailure? {
    do {
      _ = try await finish(within: span)
      return nil
    } catch {
      return error as? UpstreamFailure
    }
  }
}

extension UpstreamFailure {
  var isNotSent: Bool { if case .notSent = self { true } else { false } }
  var isResponseLost: Bool { if case .responseLost = self { true } else { false } }
}
