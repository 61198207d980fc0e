import Hummingbird
import HummingbirdCore
import Idempotency
import Logging
import NIOCore
import Platform
import ServiceLifecycle
import Telemetry

/// The readiness of this process to take requests.
public enum Readiness: Sendable, Equatable {
  case ready
  /// The process should get no requests, for this reason, in a few words.
  case notReady(String)
}

/// The admin listener: probes, metrics, records and the configuration. It is separate from the clients' listeners, and
/// on loopback by default.
public struct AdminServer: Service {
  /// The maximum number of connections: a few who watch, and the machines that ask.
  private static let maxConnections = 64

  private let host: String
  private let port: Int
  private let pages: PageGuard
  private let token: (@Sendable () -> Secret)?
  private let metrics: Metrics
  private let readiness: @Sendable () async -> Readiness
  private let configuration: @Sendable () async -> ConfigurationStatus?
  private let surroundings: @Sendable () async -> [String]
  private let recordAdmin: RecordAdmin
  private let settings: @Sendable () async -> String
  private let onListening: @Sendable () -> Void
  private let logger: Logger

  /// Creates the admin listener.
  ///
  /// - Parameters:
  ///   - host: The address to listen on.
  ///   - port: The port to listen on.
  ///   - names: The names by which the listener is reached, besides `host` and `localhost`.
  ///   - token: Returns the token that `Authorization: Bearer …` must contain now, except for the probes; `nil` if no
  ///     token is required.
  ///   - metrics: The metrics of the process.
  ///   - readiness: Returns the readiness that `/readyz` reports.
  ///   - configuration: Returns the configuration that `/readyz` reports; `nil` if there is no configuration file.
  ///   - surroundings: Returns further lines of `/readyz`.
  ///   - recordAdmin: The operations on records.
  ///   - settings: Returns the present configuration as JSON, without its secrets.
  ///   - onListening: Called once the listener accepts connections.
  ///   - logger: The logger of the listener.
  public init(
    host: String, port: Int, names: [String], token: (@Sendable () -> Secret)?, metrics: Metrics,
    readiness: @escaping @Sendable () async -> Readiness,
    configuration: @escaping @Sendable () async -> ConfigurationStatus?,
    surroundings: @escaping @Sendable () async -> [String], recordAdmin: RecordAdmin,
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
    self.recordAdmin = recordAdmin
    self.settings = settings
    self.onListening = onListening
    self.logger = logger
  }

  public func run() async throws {
    var quiet = logger
    // Errors are also thrown, and logged where they end the process.
    quiet.logLevel = .critical
    let room = ConnectionRoom(Self.maxConnections)
    let application = Application(
      router: router(),
      server: HTTPServerBuilder { responder in
        AcceptedConnections(
          http1: HTTP1Channel(
            responder: responder,
            configuration: .init(
              additionalChannelHandlers: [AbsoluteTarget.Installer(), ConnectionGuard.Installer(room)])))
      },
      configuration: .init(address: .hostname(host, port: port), serverName: nil),
      onServerRunning: { [onListening] _ in onListening() }, logger: quiet)
    do {
      try await application.runService(gracefulShutdownSignals: [])
    } catch let error as IOError {
      throw ListenError(address: "\(host.contains(":") ? "[\(host)]" : host):\(port)", error)
    }
  }

  private func router() -> Router<AdminContext> {
    // Some balancers probe by HEAD.
    let router = Router(context: AdminContext.self, options: .autoGenerateHeadEndpoints)
    // Counts by route template. Requests to unknown paths count as "NotFound".
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
    addRecords(to: guarded, recordAdmin: recordAdmin)
    if let journal = recordAdmin.journal { addRequests(to: guarded, journal: journal) }
    return router
  }
}
