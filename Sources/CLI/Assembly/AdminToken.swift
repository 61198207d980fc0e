import Admin
import ArgumentParser
import Idempotency
import Logging
import Platform
import Settings
import Synchronization
import Wire

/// The token of the admin listener, which is read again when its file changes. Safe to use from any thread.
final class AdminToken: Sendable {
  private struct State {
    var secret: Secret
    /// The file as it was when it was last read; `nil` if it could not be read.
    var status: FileStatus?
  }

  private let path: String
  private let state: Mutex<State>

  /// Reads the file, and makes it before if a start does. Prints the reason and ends the process if it has no token.
  init(reading path: String) throws {
    if AdminTokenFile.isMade(at: path) {
      do throws(SecretFile.Fault) {
        try AdminTokenFile.make(at: path, Self.random())
      } catch {
        StandardError.print("\(path): \(error); admin.token_file is made in the working directory")
        throw ExitCode.badConfiguration
      }
    }
    // The status first: a change during the reading is then found by the next look.
    let status = FileStatus(readable: path)
    self.path = path
    state = Mutex(State(secret: try ConfigurationFile.secret(at: path), status: status))
  }

  private static func random() -> String {
    var entropy = Entropy()
    return (0..<4).map { _ in (entropy.next() as UInt64).hexText }.joined()
  }

  var secret: Secret { state.withLock { $0.secret } }

  var source: @Sendable () -> Secret { { self.secret } }

  /// Reads a file that has changed, and logs the result. The token before stays in use if there is none.
  func renew(logger: Logger) {
    state.withLock { state in
      let status = FileStatus(readable: path)
      guard status != state.status else { return }
      state.status = status
      do throws(SecretFile.Fault) {
        state.secret = try SecretFile.read(path)
        logger.notice("the admin token was read again", metadata: ["file": "\(path)"])
      } catch {
        logger.error(
          "the admin token could not be read again; the one before stays in use",
          metadata: ["file": "\(path)", "error": "\(error)"])
      }
    }
  }
}

/// The tokens of the admin listener: the one that permits everything, and the one that permits reading.
struct AdminTokens: Sendable {
  private let operate: AdminToken?
  private let read: AdminToken?

  init(_ settings: AdminSettings?) throws {
    operate = try settings?.tokenFile.map(AdminToken.init)
    read = try settings?.readTokenFile.map(AdminToken.init)
  }

  var access: AdminAccess { AdminAccess(operate: operate?.source, read: read?.source) }

  func renew(logger: Logger) {
    operate?.renew(logger: logger)
    read?.renew(logger: logger)
  }
}
