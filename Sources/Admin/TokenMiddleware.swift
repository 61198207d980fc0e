import HTTPTypes
import Hummingbird
import NIOCore
import Wire

struct TokenMiddleware: RouterMiddleware {
  private static let scheme = "bearer "

  let access: AdminAccess
  let needed: AdminOperation.Access

  @concurrent
  func handle(
    _ request: Request, context: AdminContext,
    next: @concurrent (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    guard access.needsToken else { return try await next(request, context) }
    guard let given = Self.token(of: request) else {
      return Self.refusal("send the admin token as Authorization: Bearer TOKEN")
    }
    guard let role = access.role(ofToken: given) else {
      return Self.refusal("the token is another than the configured one (admin.token_file)")
    }
    guard role == .operate || needed == .read else {
      throw AdminError(
        .forbidden,
        "this token permits reading alone (admin.read_token_file): a change needs admin.token_file's")
    }
    return try await next(request, context)
  }

  /// The token in `Authorization`; `nil` for none. A scheme may have any letter case (RFC 9110, section 11.1).
  static func token(of request: Request) -> Substring? {
    let given = request.headers[.authorization] ?? ""
    guard given.prefix(scheme.count).lowercased() == scheme else { return nil }
    return given.dropFirst(scheme.count)
  }

  private static func refusal(_ text: String) -> Response {
    Response(
      status: .unauthorized, headers: [.wwwAuthenticate: "Bearer"],
      body: .init(byteBuffer: ByteBuffer(string: text + "\n")))
  }
}

struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let peer: String
  let local: IPAddress?
  /// The rights of a page's client; `nil` for other requests, and before it is known.
  var role: AdminAccess.Role?

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    peer = source.channel.remoteAddress?.ipAddress ?? "unknown"
    local = source.channel.localAddress?.ipAddress.flatMap { IPAddress($0) }
  }
}
