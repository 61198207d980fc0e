import Admin
import ArgumentParser
import Glibc
import Idempotency
import Logging
import NIOCore
import Platform
import Settings
import Synchronization
import Wire

/// A member of the configuration, or an option of a command, with the address that it names.
struct ListenPlace {
  let name: String
  let address: ServerAddress

  private var isOption: Bool { name.hasPrefix("--") }

  var demand: String { isOption ? "give another port by \(name)" : "give another address in \(name)" }

  /// - Parameter option: The option that names the address of the first listener; `nil` if a file does.
  static func all(of settings: Settings, option: String?) -> [ListenPlace] {
    var places = settings.listen.enumerated().map { index, listener in
      ListenPlace(
        name: index == 0 ? option ?? "listen[0].address" : "listen[\(index)].address",
        address: listener.address)
    }
    if let admin = settings.admin {
      places.append(
        ListenPlace(name: "admin.address", address: .tcp(host: admin.host, port: admin.port)))
    }
    return places
  }

  /// Whether one of two listeners may keep the other from its address: the ports are equal, and a host is a name.
  func mayExclude(_ other: ListenPlace) -> Bool {
    guard case .tcp(let host, let port) = address, case .tcp(let otherHost, let otherPort) = other.address,
      port == otherPort, port != 0
    else { return false }
    return IPAddress(host) == nil || IPAddress(otherHost) == nil
  }
}

/// The failure to listen on an address, with the place that names it and the way out.
struct ListenFault: Error, CustomStringConvertible {
  let description: String

  /// The failure of one of the listeners at these places; `nil` if an error is of another kind.
  init?(_ error: any Error, at places: [ListenPlace]) {
    switch error {
    case let error as SocketAddressError.UnknownHost:
      let address = ServerAddress.tcp(host: error.host, port: error.port)
      self.init(error, member: places.first { $0.address == address }?.name)
    case let error as ListenError:
      guard let index = places.firstIndex(where: { $0.address.description == error.address }) else {
        return nil
      }
      let place = places[index]
      let other = places.indices.first { $0 != index && places[$0].mayExclude(place) }.map { places[$0] }
      self.init("\(error)" + Self.advice(error.number, at: place, beside: other))
    default: return nil
    }
  }

  /// - Parameter member: The member or the option that names the host; `nil` if it is not known.
  init(_ error: SocketAddressError.UnknownHost, member: String?) {
    let address = ServerAddress.tcp(host: error.host, port: error.port)
    let place = member.map { " (\($0))" } ?? ""
    self.init(
      "cannot listen on \(address)\(place): this machine finds no address of that name "
        + "(\(error.errorDescription)); write an address of its own, such as 127.0.0.1, or 0.0.0.0 for all of them, or "
        + "make the name known, such as in /etc/hosts")
  }

  private init(_ description: String) { self.description = description }

  private static func advice(_ number: CInt?, at place: ListenPlace, beside other: ListenPlace?) -> String {
    switch number {
    case EADDRINUSE:
      if let other {
        return "; \(other.name) is \(other.address), which may have it already: \(place.demand)"
      }
      return "; end what listens there, or \(place.demand)"
    case EADDRNOTAVAIL:
      return
        "; this machine has no such address: write one of its own, such as 127.0.0.1, or 0.0.0.0 for all of them, "
        + "in \(place.name)"
    case EACCES:
      guard case .tcp(_, 1..<1024) = place.address else { return " (\(place.name))" }
      return
        "; a port below 1024 needs a right of its own (CAP_NET_BIND_SERVICE): grant it, or \(place.demand)"
    default: return " (\(place.name))"
    }
  }
}

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
