import Platform
import Synchronization

/// The sessions of browsers that have logged in, in memory: a restart ends them.
///
/// A session keeps the token that it was made with, which decides anew at each request: a token that was replaced ends
/// its sessions.
final class ConsoleSessions: Sendable {
  private struct Session {
    let token: String
    let madeAt: ContinuousClock.Instant
  }

  /// The name of the cookie.
  static let cookie = "semel_console"
  /// The lifetime of a session: a working day.
  static let lifetime = Duration.seconds(12 * 3600)
  /// The maximum number of sessions; a new one takes the place of the oldest.
  private static let maxSessions = 256

  private let sessions = Mutex<[String: Session]>([:])

  /// A name that nobody can guess: 256 random bits in hexadecimal digits.
  static func randomName() -> String {
    var entropy = Entropy()
    return (0..<4).map { _ in
      let digits = String(entropy.next() as UInt64, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// Begins a session, and returns the value of its cookie.
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
