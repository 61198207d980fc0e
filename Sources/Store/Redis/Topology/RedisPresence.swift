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

/// The servers whose signs count, by their addresses. Safe to use from any thread.
///
/// Whether a server is down is not what one connection shows: one that waits behind others' large replies looks the same
/// as one to a dead machine.
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
