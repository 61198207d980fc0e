import Foundation
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

/// The live view: one line of JSON for each event of a keyed, refused or shadowed request.
extension AdminServer {
  /// The maximum number of lines in one response.
  public static let maxLines = 512
  /// The maximum time for which a request waits for something new. A stop of the process waits no longer.
  private static let maxWaitSeconds = 8.0
  /// The time between two looks at the journal, so that requests pay nothing for those who watch them.
  private static let lookInterval = Duration.milliseconds(100)

  func addRequests(to routes: AdminRoutes, journal: RequestJournal) {
    routes.on(.listRequests) { request, _ in
      let query = try request.parameters("last", "from", "wait")
      let number = { (name: String) throws -> Double? in
        guard let text = query[name] else { return nil }
        guard let value = Double(text), value >= 0, value < 1e15 else {
          throw AdminError.bad("\(name) must be a number")
        }
        return value
      }
      let wait = min(try number("wait") ?? 0, Self.maxWaitSeconds)
      let last = Int(try number("last") ?? 0)
      // A number beyond the end is one of an earlier process.
      let from = try number("from").map { Int($0) }.map { $0 > journal.end ? 0 : $0 }
      let part = await Self.part(of: journal, from: from ?? max(0, journal.end - last), wait: wait)
      return Response.text(try Self.lines(part), status: .ok, type: "application/x-ndjson")
    }
  }

  private static func part(
    of journal: RequestJournal, from start: Int, wait: Double
  ) async -> RequestJournal.Part {
    let end = ContinuousClock.now + .seconds(wait)
    while true {
      let part = journal.part(from: start, max: maxLines)
      guard part.entries.isEmpty, ContinuousClock.now < end, !Task.isShuttingDownGracefully else {
        return part
      }
      do { try await Task.sleep(for: lookInterval) } catch { return part }
    }
  }

  /// The events, a line each, and a last line with the number of the next one and that of those missed.
  private static func lines(_ part: RequestJournal.Part) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    var lines: [String] = []
    for entry in part.entries {
      lines.append(String(decoding: try encoder.encode(RequestDocument(entry)), as: UTF8.self))
    }
    lines.append(#"{"missed":\#(part.missed),"next":\#(part.next)}"#)
    return lines.joined(separator: "\n") + "\n"
  }
}

/// One event of a request as the admin listener shows it.
public struct RequestDocument: Codable {
  public var time: String
  public var event: String
  public var record: String?
  public var route: String?
  public var method: String
  public var client: String?
  public var status: Int?
  public var outcome: String?
  public var reason: String?
  /// The end that a request of a shadowed route would have had.
  public var would: String?
  public var source: String?
  public var cause: String?
  public var attempt: Int?
  public var key: String?
  public var caller: String?
  public var durationMs: Double?

  init(_ entry: JournalEntry) {
    time = Timestamp.text(milliseconds: entry.time)
    event = entry.event.rawValue
    record = entry.record?.text
    route = entry.route
    method = entry.method ?? ""
    client = entry.client
    cause = entry.loss?.rawValue
    attempt = entry.attempt
    key = entry.keyDigest
    caller = entry.callerDigest
    guard entry.event == .ended else { return }
    status = entry.status
    outcome = entry.outcome.text
    reason = entry.refusal?.text
    would = entry.would?.text
    source = entry.source?.text
    durationMs = entry.microseconds.map { Double($0) / 1000 }
  }
}

extension Request {
  /// The parameters of the query. One that is not known, or given twice, is refused, not left out silently.
  func parameters(_ known: String...) throws(AdminError) -> [String: String] {
    var parameters: [String: String] = [:]
    for (name, value) in uri.queryParameters where !name.isEmpty {
      try require(
        known.contains(String(name)),
        "there is no parameter \(name); there are: \(known.joined(separator: ", "))")
      guard parameters.updateValue(String(value), forKey: String(name)) == nil else {
        throw AdminError.bad("\(name) is given twice: give it once")
      }
    }
    return parameters
  }
}
