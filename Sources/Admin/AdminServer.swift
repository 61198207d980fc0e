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

/// The admin listener: probes, metrics, records and the configuration.
public struct AdminServer: Service {
  /// The maximum number of connections: a few who watch, and the machines that ask.
  private static let maxConnections = 64

  private let host: String
  private let port: Int
  private let pages: PageGuard
  let access: AdminAccess
  private let metrics: Metrics
  let readiness: @Sendable () async -> Readiness
  let configuration: @Sendable () async -> ConfigurationStatus?
  let surroundings: @Sendable () async -> [String]
  let recordAdmin: RecordAdmin
  let settings: @Sendable () async -> String
  private let console: Console?
  private let onListening: @Sendable () -> Void
  private let logger: Logger

  /// Creates the admin listener.
  ///
  /// - Parameters:
  ///   - names: The names by which the listener is reached, besides `host` and `localhost`.
  ///   - access: The tokens of which `Authorization: Bearer …` must contain one, except for the probes.
  ///   - readiness: Returns the readiness that `/readyz` reports.
  ///   - configuration: Returns the configuration that `/readyz` reports; `nil` if there is no configuration file.
  ///   - surroundings: Returns further lines of `/readyz`.
  ///   - settings: Returns the present configuration as JSON, without its secrets.
  ///   - console: The pages under `/ui/`; `nil` for none.
  ///   - onListening: Called once the listener accepts connections.
  public init(
    host: String, port: Int, names: [String], access: AdminAccess, metrics: Metrics,
    readiness: @escaping @Sendable () async -> Readiness,
    configuration: @escaping @Sendable () async -> ConfigurationStatus?,
    surroundings: @escaping @Sendable () async -> [String], recordAdmin: RecordAdmin,
    settings: @escaping @Sendable () async -> String, console: Console?,
    onListening: @escaping @Sendable () -> Void, logger: Logger
  ) {
    self.host = host
    self.port = port
    pages = PageGuard(hosts: names + [host], console: console.map { ["/ui", $0.root] } ?? [])
    self.access = access
    self.metrics = metrics
    self.readiness = readiness
    self.configuration = configuration
    self.surroundings = surroundings
    self.recordAdmin = recordAdmin
    self.settings = settings
    self.console = console
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
              additionalChannelHandlers: [BehindDecoder(ConnectionGuard(room), AbsoluteTarget())])))
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
    addAPI(to: AdminRoutes(router: router.group(), access: access))
    if let console { addConsole(console, to: router) }
    return router
  }

  private func addAPI(to routes: AdminRoutes) {
    addProbes(to: routes)
    routes.on(.getMetrics) { [metrics] _, _ in
      Response.text(await metrics.page(), status: .ok, type: "text/plain; version=0.0.4; charset=utf-8")
    }
    routes.on(.getConfiguration) { [settings] _, _ in
      Response.text(await settings() + "\n", status: .ok, type: "application/json")
    }
    routes.on(.getDescription) { _, _ in
      Response.text(OpenAPIDocument.text, status: .ok, type: "application/json")
    }
    routes.on(.listAudit) { [recordAdmin] _, _ in
      Response.json(["entries": recordAdmin.trail.latest])
    }
    addRecords(to: routes)
    if let journal = recordAdmin.journal { addRequests(to: routes, journal: journal) }
  }

  private func addProbes(to routes: AdminRoutes) {
    routes.on(.getLiveness) { _, _ in Response.text("ok\n", status: .ok) }
    routes.on(.getReadiness) { [readiness, configuration, surroundings] _, _ in
      let lines = await surroundings().map { $0 + "\n" }
      let standing = (await configuration()?.text ?? "") + lines.joined()
      switch await readiness() {
      case .ready: return Response.text("ready\n" + standing, status: .ok)
      case .notReady(let reason):
        return Response.text("not ready: \(reason)\n" + standing, status: .serviceUnavailable)
      }
    }
  }
}
