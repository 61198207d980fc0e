import Hummingbird
import Idempotency
import Logging
import Loop
import NIOCore
import ServiceLifecycle
import Telemetry

/// Whether this process should be given requests.
public enum Readiness: Sendable, Equatable {
  case ready
  /// Why not, in a few words.
  case notReady(String)
}

/// The operator's listener: probes, metrics, records and the configuration. Separate from the clients' one, loopback
/// by default.
public struct AdminServer: Service {
  private let host: String
  private let port: Int
  private let pages: PageGuard
  private let token: Secret?
  private let metrics: Metrics
  private let readiness: @Sendable () async -> Readiness
  private let configuration: @Sendable () async -> ConfigurationStanding?
  private let surroundings: @Sendable () async -> [String]
  private let desk: RecordDesk
  private let settings: @Sendable () async -> String
  private let onListening: @Sendable () -> Void
  private let logger: Logger

  /// - Parameters:
  ///   - names: by which it is reached, besides `host` and `localhost`.
  ///   - configuration: what `/readyz` tells of it; `nil` where there is no file.
  ///   - surroundings: what else `/readyz` names, a line each.
  ///   - settings: the configuration at work as JSON, without its secrets.
  ///   - onListening: called once it takes connections.
  ///   - token: what `Authorization: Bearer …` must say, for everything but the probes; `nil`: nothing is asked.
  public init(
    host: String, port: Int, names: [String], token: Secret?, metrics: Metrics,
    readiness: @escaping @Sendable () async -> Readiness,
    configuration: @escaping @Sendable () async -> ConfigurationStanding?,
    surroundings: @escaping @Sendable () async -> [String], desk: RecordDesk,
    settings: @escaping @Sendable () async -> String, onListening: @escaping @Sendable () -> Void,
    logger: Logger
  ) {
    self.host = host
    self.port = port
    pages = PageGuard(hosts: names + [host])
    self.token = token
    self.metrics = metrics
    self.readiness = readiness
    self.configuration = configuration
    self.surroundings = surroundings
    self.desk = desk
    self.settings = settings
    self.onListening = onListening
    self.logger = logger
  }

  public func run() async throws {
    var quiet = logger
    // Errors are thrown, too, and told of once, where they end the process.
    quiet.logLevel = .critical
    let application = Application(
      router: router(), configuration: .init(address: .hostname(host, port: port), serverName: nil),
      onServerRunning: { [onListening] _ in onListening() }, logger: quiet)
    do {
      try await application.runService(gracefulShutdownSignals: [])
    } catch let error as IOError {
      throw ListenError(address: "\(host.contains(":") ? "[\(host)]" : host):\(port)", error)
    }
  }

  private func router() -> Router<AdminContext> {
    let router = Router(context: AdminContext.self)
    // By the templates of routes; a path that meets none is "NotFound".
    router.add(middleware: MetricsMiddleware())
    router.add(middleware: PageGuardMiddleware(pages: pages))
    router.get("/livez") { _, _ in "ok\n" }
    router.get("/readyz") { [readiness, configuration, surroundings] _, _ in
      let lines = await surroundings().map { $0 + "\n" }
      let standing = (await configuration()?.text ?? "") + lines.joined()
      switch await readiness() {
      case .ready: return Response.text("ready\n" + standing, status: .ok)
      case .notReady(let reason):
        return Response.text("not ready: \(reason)\n" + standing, status: .serviceUnavailable)
      }
    }
    let guarded = router.group().add(middleware: TokenMiddleware<AdminContext>(token: token))
    guarded.get("/metrics") { [metrics] _, _ in
      Response.text(await metrics.page(), status: .ok, type: "text/plain; version=0.0.4; charset=utf-8")
    }
    guarded.get("/v1/config") { [settings] _, _ in
      Response.text(await settings() + "\n", status: .ok, type: "application/json")
    }
    addRecords(to: guarded, desk: desk)
    return router
  }
}
