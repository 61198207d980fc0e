import HTTPTypes
import Hummingbird
import Idempotency
import NIOCore
import Wire

/// The tokens of the admin listener, and what each of them permits.
public struct AdminAccess: Sendable {
  enum Role: String, Sendable { case read, operate }

  private let operate: (@Sendable () -> Secret)?
  private let read: (@Sendable () -> Secret)?

  /// - Parameters:
  ///   - operate: Returns the token that permits everything; `nil` if no token is required.
  ///   - read: Returns the token that permits reading; `nil` if there is none. It counts beside the first one alone.
  public init(operate: (@Sendable () -> Secret)? = nil, read: (@Sendable () -> Secret)? = nil) {
    self.operate = operate
    self.read = read
  }

  var needsToken: Bool { operate != nil }

  /// The role that a token gives; `nil` for a token that is none of those configured.
  func role(ofToken given: some StringProtocol) -> Role? {
    if let operate, Self.areEqual(given, operate()) { return .operate }
    if let read, Self.areEqual(given, read()) { return .read }
    return nil
  }

  /// A token without the spaces around it (RFC 9110, section 5.5); `nil` for spaces alone, which equal no other.
  private static func trimmed(_ token: some StringProtocol) -> ArraySlice<UInt8>? {
    func isInner(_ byte: UInt8) -> Bool { byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\t") }
    let bytes = Array(token.utf8)
    guard let first = bytes.firstIndex(where: isInner), let last = bytes.lastIndex(where: isInner) else {
      return nil
    }
    return bytes[first...last]
  }

  /// Compares in a time that does not depend on the position of the first difference.
  private static func areEqual(_ given: some StringProtocol, _ own: Secret) -> Bool {
    guard let left = trimmed(given), let right = trimmed(own.revealed), left.count == right.count else {
      return false
    }
    var differences: UInt8 = 0
    for (given, own) in zip(left, right) { differences |= given ^ own }
    return differences == 0
  }
}

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
