import HTTPTypes
import Hummingbird

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
