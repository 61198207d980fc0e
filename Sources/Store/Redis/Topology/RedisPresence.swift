import Idempotency
import Platform
import Synchronization
import Wire

/// The last sign of one server on any connection of this process. Safe to use from any thread.
final class RedisPresence: Sendable {
  private let nanoseconds = Atomic<Int64>(.min)

  /// Takes the arrival of bytes from the server, whatever they say.
  func heard(at now: BootInstant) { nanoseconds.store(now.nanoseconds, ordering: .relaxed) }

  func hasSpoken(since begin: BootInstant) -> Bool {
    nanoseconds.load(ordering: .relaxed) >= begin.nanoseconds
  }
}

/// The servers whose signs count, not those of one connection, which may wait behind large replies. Thread-safe.
final class RedisPresences: Sendable {
  private let known = Mutex<[ServerAddress: RedisPresence]>([:])

  func of(_ address: ServerAddress) -> RedisPresence {
    known.withLock { known in
      if let presence = known[address] { return presence }
      let presence = RedisPresence()
      known[address] = presence
      return presence
    }
  }
}

extension RedisLink {
  /// The number of bytes that have passed, in both directions.
  var passedBytes: Int {
    guard let handler else { return readBytes }
    return readBytes + writtenBytes - handler.unsentBytes
  }

  /// Whether the server answers nobody: a connection that was begun after its last sign to anyone in this process has
  /// failed, or has got no sign for the time of a call. `nil` if that is not known yet.
  func isServerSilent(at now: BootInstant) -> Bool? {
    if isUp { return false }
    guard let presence else { return outage == nil ? nil : true }
    if let failedAttemptAt, !presence.hasSpoken(since: failedAttemptAt) { return true }
    guard isConnecting, let attemptedAt, now - attemptedAt >= settings.timeout else { return nil }
    return presence.hasSpoken(since: attemptedAt) ? nil : true
  }
}
