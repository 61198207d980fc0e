import Idempotency
import Logging
import Loop
import NIOCore
import NIOPosix
import TestSupport
import Testing
import Wire

@testable import Transport

/// The two ways to a backend; every test of the port runs on both.
enum Transport: String, CaseIterable, Sendable {
  case native, libcurl

  @TaskLocal static var tested = Transport.native
}

/// Runs each test of a suite once for each transport.
struct OnBothTransports: SuiteTrait, TestTrait, TestScoping {
  func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }
  var isRecursive: Bool { true }

  @concurrent func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
  ) async throws {
    for transport in Transport.allCases {
      try await Transport.$tested.withValue(transport) { try await function() }
    }
  }
}

extension Trait where Self == OnBothTransports {
  static var onBothTransports: OnBothTransports { OnBothTransports() }
}

/// The transport that is tested, with what only tests look at.
final class TestedUpstream: @unchecked Sendable {
  private let native: NativeUpstream
  private let curl: CurlUpstream
  private let transport = Transport.tested

  init(context: EventLoopContext, watcher: CurlWatcher) throws {
    native = NativeUpstream(context: context, loops: 1, logger: Logger(label: "test"))
    curl = try CurlUpstream(context: context, loops: 1, watcher: watcher, logger: Logger(label: "test"))
  }

  func begin(_ request: UpstreamRequest) -> HTTPExchange {
    switch transport {
    case .native: .native(native.begin(request))
    case .libcurl: .curl(curl.begin(request))
    }
  }

  func shutdown() {
    native.shutdown()
    curl.shutdown()
  }

  var counters: UpstreamCounters {
    switch transport {
    case .native: native.counters
    case .libcurl: curl.counters
    }
  }
}

extension HTTPExchange {
  private var any: any AwaitableExchange {
    switch self {
    case .native(let exchange): exchange
    case .curl(let exchange): exchange
    }
  }
  var failure: UpstreamFailure? { any.failure }
  var sentAt: NIODeadline? { any.sentAt }
  var waitingBytes: Int { any.waitingBytes }
}

/// One event loop with its upstream and a watcher, for one test.
final class Harness: Sendable {
  let context: EventLoopContext
  let upstream: TestedUpstream
  private let group: MultiThreadedEventLoopGroup
  private let watcher: CurlWatcher

  private init() throws {
    group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    context = EventLoopContext(loop: group.next())
    watcher = try CurlWatcher()
    upstream = try TestedUpstream(context: context, watcher: watcher)
  }

  /// Runs a test on the loop, and takes everything down after it.
  static func run<T: Sendable>(_ body: @escaping @Sendable (Harness) async throws -> T) async throws -> T {
    let harness = try Harness()
    let result: Result<T, any Error>
    do { result = .success(try await harness.onLoop { try await body(harness) }) } catch {
      result = .failure(error)
    }
    try await harness.context.loop.submit { harness.upstream.shutdown() }.get()
    harness.watcher.shutdown()
    try await harness.group.shutdownGracefully()
    return try result.get()
  }

  func onLoop<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async throws -> T {
    try await Task(executorPreference: context.executor) { try await body() }.value
  }
}

extension UpstreamSettings {
  static func loopback(_ port: Int) -> UpstreamSettings {
    UpstreamSettings(name: "backend", address: .tcp(host: "127.0.0.1", port: port))
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
    fields: String = "Host: test\r\n", body: RequestBody = .none, permit: SendPermit? = nil
  ) -> UpstreamRequest {
    UpstreamRequest(
      upstream: upstream, method: method, target: target, fields: ByteBuffer(string: fields),
      body: body, permit: permit)
  }
}

extension SendPermit {
  static func fresh() -> SendPermit { SendPermit(askedAt: .now, lease: .seconds(30)) }
}

/// An answer as a test compares it.
struct Answer: Equatable {
  var status: Int
  var body: String
  var trailers = ""
}

extension HTTPExchange {
  /// Reads the whole answer and gives the connection back.
  func finish(within span: Milliseconds = .seconds(10)) async throws -> Answer {
    defer { close() }
    let head = try await head(within: span)
    guard case .whole(let body) = try await collect(upTo: 1 << 24, within: span) else {
      return Answer(status: head.head.status, body: "too large")
    }
    return Answer(
      status: head.head.status, body: String(buffer: body), trailers: String(buffer: trailers))
  }

  /// How the exchange fails.
  func failure(within span: Milliseconds = .seconds(10)) async -> UpstreamFailure? {
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
  var isAnswerLost: Bool { if case .answerLost = self { true } else { false } }
}
