import HTTPTypes
import Hummingbird
import Idempotency
import Platform
import ServiceLifecycle
import Synchronization
import Telemetry

/// The pages of the admin listener for the person on call. Run it as a service: it samples the counts of routes, and
/// walks the open records while somebody looks at them.
public final class Console: Service {
  private static let sampleInterval = Duration.seconds(5)

  let operate: Bool
  let showsBodies: Bool
  /// The beginning of the pages' paths, as browsers see it.
  let root: String
  let recordAdmin: RecordAdmin
  let metrics: Metrics
  let sessions = ConsoleSessions()
  let survey: OpenSurvey
  let plans = BulkPlans()
  let streams = LiveStreams()
  private let histories = Mutex<[String: CountRing]>([:])

  /// - Parameters:
  ///   - operate: Whether pages change records where the listener has no token.
  ///   - bodies: Whether pages show the bodies of recorded responses.
  ///   - basePath: The path before `/ui/` as browsers see it, without a slash at its end.
  public init(operate: Bool, bodies: Bool, basePath: String, recordAdmin: RecordAdmin, metrics: Metrics) {
    (self.operate, showsBodies, root) = (operate, bodies, basePath + "/ui")
    self.recordAdmin = recordAdmin
    self.metrics = metrics
    survey = OpenSurvey(recordAdmin: recordAdmin)
  }

  public func run() async throws {
    await cancelWhenGracefulShutdown {
      await withDiscardingTaskGroup { group in
        group.addTask { await self.survey.run() }
        group.addTask {
          while !Task.isCancelled {
            self.sample()
            try? await Task.sleep(for: Self.sampleInterval)
          }
        }
      }
    }
  }

  private func sample() {
    let figures = metrics.routeFigures
    histories.withLock { histories in
      for route in figures {
        histories[route.name, default: CountRing(width: CountSeries.all.count)].add(route.series)
      }
    }
  }

  func history(of route: String) -> CountRing {
    histories.withLock { $0[route] } ?? CountRing(width: CountSeries.all.count)
  }
}

/// The open streams of *Live*, each of which is one of the listener's connections.
final class LiveStreams: Sendable {
  /// One stream; its place is free once nobody holds this.
  final class Place: Sendable {
    private let streams: LiveStreams

    fileprivate init(_ streams: LiveStreams) { self.streams = streams }

    deinit { streams.count.subtract(1, ordering: .relaxed) }
  }

  /// The maximum number, of the listener's 64 connections.
  private static let max = 16

  private let count = Atomic<Int>(0)

  func enter() -> Place? {
    let place = count.add(1, ordering: .relaxed).newValue
    guard place <= Self.max else {
      count.subtract(1, ordering: .relaxed)
      return nil
    }
    return Place(self)
  }
}

extension AdminServer {
  func addConsole(_ console: Console, to router: Router<AdminContext>) {
    let surroundings = ConsoleSurroundings(
      readiness: readiness, configuration: configuration, lines: surroundings, settings: settings)
    router.get("/") { _, _ in
      Response(status: .seeOther, headers: [.location: console.root + "/"])
    }
    // A proxy in front may pass the path before them on, or take it off.
    for prefix in Set(["/ui", console.root]) {
      addAssets(to: router.group(RouterPath(prefix)), console)
      let pages = router.group(RouterPath(prefix)).add(
        middleware: ConsoleMiddleware(console: console, access: access))
      addPages(to: pages, console, surroundings)
      addRecordPages(to: pages, console)
    }
  }

  private func addAssets(to group: RouterGroup<AdminContext>, _ console: Console) {
    group.get("style.css") { _, _ in
      ConsoleFrame.response(ConsoleAssets.style, type: "text/css; charset=utf-8", lifetime: 60)
    }
    group.get("console.js") { _, _ in
      ConsoleFrame.response(ConsoleAssets.script, type: "text/javascript; charset=utf-8", lifetime: 60)
    }
    group.get("icon.svg") { _, _ in
      ConsoleFrame.response(ConsoleAssets.icon, type: "image/svg+xml", lifetime: 3600)
    }
    group.post("login") { [access] request, context in
      try await Self.logIn(request, context, console, access)
    }
    group.post("logout") { request, _ in
      if let cookie = request.cookies[ConsoleSessions.cookie] { console.sessions.end(cookie.value) }
      var response = Response(status: .seeOther, headers: [.location: console.root + "/"])
      response.setCookie(Self.cookie("", of: console, maxAge: 0))
      return response
    }
  }

  private static func cookie(_ value: String, of console: Console, maxAge: Int) -> Cookie {
    Cookie(
      name: ConsoleSessions.cookie, value: value, maxAge: maxAge, path: console.root, httpOnly: true,
      sameSite: .strict)
  }

  /// Begins a session, and leads to the page that was wanted.
  private static func logIn(
    _ request: Request, _ context: AdminContext, _ console: Console, _ access: AdminAccess
  ) async throws -> Response {
    let form = try await FormFields(of: request)
    let frame = ConsoleFrame(console, context, hasLogin: true)
    let wanted = form["to"] ?? ""
    guard let token = form["token"], access.role(ofToken: token) != nil else {
      return frame.page(.login, view(["refused": true, "to": wanted]), status: .unauthorized)
    }
    // Only a path of the console: another one would lead its user elsewhere.
    let isOwn = wanted.hasPrefix(console.root + "/") && !wanted.contains("\\") && !wanted.contains("//")
    var response = Response(
      status: .seeOther, headers: [.location: isOwn ? wanted : console.root + "/", .cacheControl: "no-store"])
    response.setCookie(
      cookie(
        console.sessions.begin(token: token), of: console,
        maxAge: Int(ConsoleSessions.lifetime.components.seconds)))
    return response
  }

  private func addPages(
    to pages: RouterGroup<AdminContext>, _ console: Console, _ surroundings: ConsoleSurroundings
  ) {
    let frame = { @Sendable [access] (context: AdminContext) in
      ConsoleFrame(console, context, hasLogin: access.needsToken)
    }
    pages.get("") { _, context in
      frame(context).page(
        .now, await NowPage(console: console, surroundings: surroundings).content(), refreshes: true)
    }
    pages.get("routes") { _, context in
      frame(context).page(.routes, await RoutesPage(console: console).content(), refreshes: true)
    }
    pages.get("live") { request, context in
      try await LivePage(console: console, frame: frame(context)).show(request)
    }
    pages.get("live/events") { request, context in
      try await LivePage(console: console, frame: frame(context)).stream(request)
    }
    pages.get("audit") { _, context in frame(context).page(.audit, AuditPage(console: console).content) }
    pages.get("configuration") { _, context in
      frame(context).page(.configuration, await ConfigurationPage(surroundings: surroundings).content())
    }
    pages.get("**") { _, _ -> Response in throw AdminError(.notFound, "There is no such page.") }
  }

  private func addRecordPages(to pages: RouterGroup<AdminContext>, _ console: Console) {
    let frame = { @Sendable [access] (context: AdminContext) in
      ConsoleFrame(console, context, hasLogin: access.needsToken)
    }
    let record = { @Sendable (context: AdminContext) throws in
      RecordPage(console: console, frame: frame(context), id: try Self.id(context))
    }
    pages.get("records") { request, context in
      try await RecordsPage(console: console, frame: frame(context)).list(request)
    }
    pages.post("records/search") { request, context in
      try await RecordsPage(console: console, frame: frame(context)).search(request)
    }
    pages.post("records/bulk") { request, context in
      try await BulkPage(console: console, frame: frame(context)).count(request)
    }
    pages.post("records/bulk/confirm") { request, context in
      try await BulkPage(console: console, frame: frame(context)).confirm(request, context)
    }
    pages.get("records/{id}") { request, context in try await record(context).show(request) }
    pages.post("records/{id}/body") { _, context in try await record(context).showBody(context) }
    pages.post("records/{id}/resolve") { request, context in
      try await record(context).resolve(request, context)
    }
    pages.post("records/{id}/forget") { request, context in try await record(context).forget(request, context)
    }
  }
}
