import Hummingbird

/// Refuses requests that a web page of another origin has caused, before anything else is checked.
struct PageGuardMiddleware: RouterMiddleware {
  let pages: PageGuard

  @concurrent
  func handle(
    _ request: Request, context: AdminContext,
    next: @concurrent (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    switch pages.verdict(on: request.head, at: context.local) {
    case .accept: return try await next(request, context)
    case .foreignHost:
      throw AdminError(
        .forbidden, "this Host is not the listener's: reach it by its own address, or add it to admin.hosts")
    case .foreignPage:
      throw AdminError(.forbidden, "requests that a web page of another origin causes are refused")
    case .changeWithoutJSON:
      throw AdminError(.unsupportedMediaType, "send a change with Content-Type: application/json")
    }
  }
}
