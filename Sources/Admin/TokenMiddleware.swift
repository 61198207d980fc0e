import HTTPTypes
import Hummingbird
import Idempotency
import NIOCore
import Wire

/// Refuses requests without the admin token.
struct TokenMiddleware<Context: RequestContext>: RouterMiddleware {
  private static var scheme: String { "bearer " }

  /// Returns the token that requests need now; `nil` if none is needed.
  let token: (@Sendable () -> Secret)?

  @concurrent
  func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard let token else { return try await next(request, context) }
    let given = request.headers[.authorization] ?? ""
    // A scheme may have any letter case (RFC 9110, section 11.1).
    let isBearer = given.prefix(Self.scheme.count).lowercased() == Self.scheme
    guard isBearer,
      Self.areEqual(
        Self.trimmed(Array(given.dropFirst(Self.scheme.count).utf8)),
        Self.trimmed(Array(token().revealed.utf8)))
    else {
      let text =
        isBearer
        ? "the token is another than the configured one (admin.token_file)"
        : "send the admin token as Authorization: Bearer TOKEN"
      return Response(
        status: .unauthorized, headers: [.wwwAuthenticate: "Bearer"],
        body: .init(byteBuffer: ByteBuffer(string: text + "\n")))
    }
    return try await next(request, context)
  }

  /// A token without the spaces around it, which the value of a field loses on its way (RFC 9110, section 5.5). One of
  /// spaces alone is none, and equals no other.
  private static func trimmed(_ token: [UInt8]) -> ArraySlice<UInt8>? {
    func isInner(_ byte: UInt8) -> Bool { byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\t") }
    guard let first = token.firstIndex(where: isInner), let last = token.lastIndex(where: isInner) else {
      return nil
    }
    return token[first...last]
  }

  /// Compares in a time that does not depend on the position of the first difference.
  private static func areEqual(_ left: ArraySlice<UInt8>?, _ right: ArraySlice<UInt8>?) -> Bool {
    guard let left, let right, left.count == right.count else { return false }
    var differences: UInt8 = 0
    for (own, other) in zip(left, right) { differences |= own ^ other }
    return differences == 0
  }
}

/// The context of a request to the admin listener.
struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The client's address, for the audit log.
  let peer: String
  /// The address at which the request arrived; `nil` if it is not known.
  let local: IPAddress?

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    peer = source.channel.remoteAddress?.ipAddress ?? "unknown"
    local = source.channel.localAddress?.ipAddress.flatMap { IPAddress($0) }
  }
}
