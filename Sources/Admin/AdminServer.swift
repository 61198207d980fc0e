import Hummingbird
import Logging
import ServiceLifecycle
import Telemetry

/// Whether this process should be given requests.
package enum Readiness: Sendable, Equatable {
  case ready
  /// Why not, in a few words.
  case notReady(String)
}

/// The operator's listener: probes and counters. Separate from the clients' one, loopback by default.
package struct AdminServer: Service {
  private let host: String
  private let port: Int
  private let token: String?
  private let counters: Counters
  private let readiness: @Sendable () async -> Readiness
  private let logger: Logger

  /// - Parameters:
  ///   - token: what `Authorization: Bearer …` must say, for everything but the probes; `nil`: nothing is asked.
  package init(
    host: String, port: Int, token: String?, counters: Counters,
    readiness: @escaping @Sendable () async -> Readiness, logger: Logger
  ) {
    self.host = host
    self.port = port
    self.token = token
    self.counters = counters
    self.readiness = readiness
    self.logger = logger
  }

  package func run() async throws {
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    let application = Application(
      router: router(), configuration: .init(address: .hostname(host, port: port), serverName: nil),
      logger: quiet)
    try await application.runService(gracefulShutdownSignals: [])
  }

  private func router() -> Router<BasicRequestContext> {
    let router = Router()
    router.get("/livez") { _, _ in "ok\n" }
    router.get("/readyz") { [readiness] _, _ in
      switch await readiness() {
      case .ready: Response.text("ready\n", status: .ok)
      case .notReady(let reason): Response.text("not ready: \(reason)\n", status: .serviceUnavailable)
      }
    }
    router.group().add(middleware: TokenMiddleware(token: token)).get("/metrics") { [counters] _, _ in
      Response.text(counters.page(), status: .ok, type: "text/plain; version=0.0.4; charset=utf-8")
    }
    return router
  }
}

extension Response {
  fileprivate static func text(
    _ text: String, status: HTTPResponse.Status, type: String = "text/plain; charset=utf-8"
  ) -> Response {
    Response(
      status: status, headers: [.contentType: type], body: .init(byteBuffer: ByteBuffer(string: text)))
  }
}
