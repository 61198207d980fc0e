import HTTPTypes
import Hummingbird
import NIOCore
import Platform
import Synchronization
import Wire

/// The sessions of browsers, in memory. Each keeps its token, which decides anew at each request: a token that was
/// replaced ends its sessions.
final class ConsoleSessions: Sendable {
  private struct Session {
    let token: String
    let madeAt: ContinuousClock.Instant
  }

  static let cookie = "semel_console"
  /// The lifetime of a session: a working day.
  static let lifetime = Duration.seconds(12 * 3600)
  /// The maximum number of sessions; a new one takes the place of the oldest.
  private static let maxSessions = 256

  private let sessions = Mutex<[String: Session]>([:])

  /// A name that nobody can guess: 256 random bits in hexadecimal digits.
  static func randomName() -> String {
    var entropy = Entropy()
    return (0..<4).map { _ in (entropy.next() as UInt64).hexText }.joined()
  }

  func begin(token: String) -> String {
    let name = Self.randomName()
    sessions.withLock { sessions in
      sessions = sessions.filter { ContinuousClock.now - $0.value.madeAt < Self.lifetime }
      if sessions.count >= Self.maxSessions,
        let oldest = sessions.min(by: { $0.value.madeAt < $1.value.madeAt })
      {
        sessions[oldest.key] = nil
      }
      sessions[name] = Session(token: token, madeAt: .now)
    }
    return name
  }

  /// The token of a session; `nil` if there is no such session, or it is over.
  func token(of name: String) -> String? {
    sessions.withLock { sessions in
      guard let session = sessions[name], ContinuousClock.now - session.madeAt < Self.lifetime else {
        return nil
      }
      return session.token
    }
  }

  func end(_ name: String) { sessions.withLock { $0[name] = nil } }
}

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
    guard access.needsToken else { return console.operate ? .operate : .read }
    if let token = TokenMiddleware.token(of: request) { return access.role(ofToken: token) }
    guard let cookie = request.cookies[ConsoleSessions.cookie] else { return nil }
    return console.sessions.token(of: cookie.value).flatMap { access.role(ofToken: $0) }
  }
}

struct FormFields {
  /// The maximum size of a form: a response that an operator states, and more.
  private static let maxBytes = 1 << 20

  private let fields: [String: String]

  init(of request: Request) async throws {
    let bytes: ByteBuffer
    do {
      bytes = try await request.body.collect(upTo: Self.maxBytes)
    } catch is NIOTooManyBytesError {
      throw AdminError(
        .contentTooLarge, "The form is larger than 1 MiB: use `semel key resolve` for a larger response.")
    }
    do {
      fields = try URLEncodedFormDecoder().decode([String: String].self, from: String(buffer: bytes))
    } catch {
      throw AdminError.bad("The form cannot be read.")
    }
  }

  /// The text of a field without the spaces around it; `nil` if it is empty.
  subscript(name: String) -> String? {
    let text = fields[name]?.trimmingSpaces ?? ""
    return text.isEmpty ? nil : text
  }

  func whole(_ name: String) -> String { fields[name] ?? "" }
}

extension String {
  var trimmingSpaces: String {
    let isSpace = { (character: Character) in character.isWhitespace }
    return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
  }
}
