import Idempotency
import Logging
import NIOCore
import NIOPosix
import Platform
import Proxy
import Transport

/// The examination of all backends that the settings name: a `GET /` of each, on the transport that `semel run` uses.
struct BackendExamination {
  private static let longestWait: Milliseconds = .seconds(5)
  private static let longestBody = 1 << 20

  private let upstreams: [UpstreamSettings]

  init(_ upstreams: some Sequence<UpstreamSettings>) {
    self.upstreams = upstreams.sorted { $0.name < $1.name }
  }

  /// Sends the requests, and returns what is wrong with the responses: a sentence each, sorted by upstream.
  func findings() async throws -> [String] {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let context = EventLoopContext(loop: group.next())
    let transport = HTTPUpstream(context: context, loops: 1, logger: Logger.silent)
    let findings = await withTaskGroup(of: (String, String?).self) { tasks in
      for upstream in upstreams {
        tasks.addTask {
          await context.run { (upstream.name, await Self.finding(about: upstream, on: transport)) }
        }
      }
      return await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    await context.run { transport.shutdown() }
    try await group.shutdownGracefully()
    return upstreams.compactMap { upstream in
      findings[upstream.name].map { "upstreams.\(upstream.name): \($0)" }
    }
  }

  /// The fault of one backend's response; `nil` if such a response is kept. Runs on the transport's loop.
  private static func finding(about upstream: UpstreamSettings, on transport: HTTPUpstream) async -> String? {
    let exchange = transport.begin(request(to: upstream))
    defer { exchange.close() }
    let span = min(upstream.responseTimeout, longestWait)
    var hasBegun = false
    do throws(UpstreamFailure) {
      let head = try await exchange.head(within: span)
      guard !head.isDelimitedByClose else {
        return """
          only the connection's end marks the end of the response to GET /: a response of this form can be cut short \
          without a sign, and is not kept; let the backend send Content-Length, or chunks
          """
      }
      hasBegun = true
      _ = try await exchange.collect(upTo: longestBody, within: span)
      return nil
    } catch {
      // A body that goes on, such as a stream of events, is no fault.
      if hasBegun, error == .timedOut { return nil }
      return text(of: error, within: span)
    }
  }

  private static func request(to upstream: UpstreamSettings) -> UpstreamRequest {
    let fields = "Host: \(upstream.hostField(for: nil))\r\nUser-Agent: semel-check\r\nAccept: */*\r\n"
    return UpstreamRequest(
      upstream: upstream, method: "GET", target: "/", fields: ByteBuffer(string: fields), body: .none,
      permit: nil)
  }

  private static func text(of failure: UpstreamFailure, within span: Milliseconds) -> String {
    switch failure {
    case .malformed(let status, let rule):
      """
      the response to GET / breaks a rule of HTTP and cannot be read behind its status \(status), so that a response of \
      this form is not kept: \(rule)
      """
    case .notSent(let reason), .busy(let reason), .headTooLarge(let reason):
      "the backend cannot be reached: \(reason)"
    case .responseLost(let reason), .requestBody(let reason):
      "the response to GET / was lost: \(reason)"
    case .timedOut: "the backend does not respond to GET / within \(span.count) ms"
    }
  }
}

extension Logger {
  fileprivate static var silent: Logger { Logger(label: "semel") { _ in SwiftLogNoOpLogHandler() } }
}
