import HTTPTypes
import Hummingbird

/// Finds out what the client of a page may do, and shows refusals and errors as pages.
struct ConsoleMiddleware: RouterMiddleware {
  let console: Console
  let access: AdminAccess

  @concurrent
  func handle(
    _ request: Request, context: AdminContext,
    next: @concurrent (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    var context = context
    context.role = role(of: request)
    let frame = ConsoleFrame(console, context, hasLogin: access.needsToken)
    guard context.role != nil else {
      return frame.page(.login, ["to": request.uri.description], status: .unauthorized)
    }
    if request.method == .post, context.role != .operate, !request.uri.path.hasSuffix("/search") {
      return frame.error(.forbidden, access.needsToken ? Self.readToken : Self.readOnly)
    }
    do {
      return try await next(request, context)
    } catch let error as AdminError {
      return frame.error(error.status, error.detail)
    }
  }

  private static let readToken =
    "You have logged in with the token that permits reading alone. To change records, log in with the one of "
    + "admin.token_file."
  private static let readOnly =
    "The console may not change records, since the listener has no token. Set a token_file, or ui: {operate: true}, in "
    + "the section admin."

  private func role(of request: Request) -> AdminAccess.Role? {
    guard access.needsToken else { return console.options.operate ? .operate : .read }
    if let token = TokenMiddleware.token(of: request) { return access.role(ofToken: token) }
    guard let cookie = request.cookies[ConsoleSessions.cookie] else { return nil }
    return console.sessions.token(of: cookie.value).flatMap { access.role(ofToken: $0) }
  }
}
