import Idempotency
import Wire

/// The waits of one connection for replicas: when the waiting command is written, which scripts' replies need one, and
/// when claims are refused without a try. Pure.
///
/// `WAIT` covers every change that its connection has made before it. One at a time is under way; the next one covers
/// scripts that are written meanwhile. What was only read is covered once its connection has written after it: Redis
/// from 7.2 on and Valkey wait for the last write of the connection.
struct ReplicaProof {
  enum Next: Equatable {
    /// Write the waiting command again now.
    case wait
    /// Write it again after a pause, to learn when the replicas are back.
    case waitLater
    /// Write it with the next script.
    case rest
  }

  /// The pause between two waits while replicas are missing and no script is open, for other commands.
  static let pause: Milliseconds = 50

  private let maxShortfall: Milliseconds
  private var waitingSince: BootInstant?
  /// The number of scripts whose changes are neither proven nor given up.
  private(set) var openCount = 0
  /// The time since which no wait was successful.
  private var missingSince: BootInstant?
  /// The store's time of a script all of whose predecessors are proven.
  private var provenUntil: StoreInstant?

  init(maxShortfall: Milliseconds) { self.maxShortfall = maxShortfall }

  /// Takes a script that was written, or turns out to need a wait. One that is under way then covers it.
  mutating func wrote() { openCount += 1 }

  mutating func settled(_ count: Int = 1) {
    openCount -= count
    invariant(openCount >= 0, "more scripts settled than were written")
  }

  /// Returns whether the waiting command ends the connection's next write, and then counts as written.
  mutating func begins(at now: BootInstant) -> Bool {
    guard waitingSince == nil, openCount > 0 || missingSince != nil else { return false }
    waitingSince = now
    return true
  }

  /// Takes the reply to the waiting command, before the scripts that it covers are settled.
  ///
  /// - Parameter last: The store's time in the last covered reply before it.
  mutating func waited(isMet: Bool, last: StoreInstant?) {
    guard let since = waitingSince else { invariantBroken("a reply without a wait") }
    waitingSince = nil
    if isMet {
      missingSince = nil
      provenUntil = last ?? provenUntil
    } else {
      missingSince = missingSince ?? since
    }
  }

  var next: Next {
    if openCount > 0 { return .wait }
    return missingSince == nil ? .rest : .waitLater
  }

  /// Whether replicas have been missing for as long as a call may take.
  func isShort(at now: BootInstant) -> Bool { missingSince.map { now - $0 >= maxShortfall } ?? false }

  /// Returns whether a reply counts only once replicas have what it changed, or what it reports as completed. A
  /// completion that is older than a proven script is proven with it.
  ///
  /// - Parameter isAwaited: Whether the script's own change needs replicas (`RedisScript.awaitsReplicas`).
  mutating func isNeeded(by reply: ScriptReply, isAwaited: Bool) -> Bool {
    // The store's clock was set back: its times no longer show which change came first.
    if let proven = provenUntil, reply.now < proven { provenUntil = nil }
    switch reply.ending {
    case .done: return isAwaited
    case .result(let result):
      switch result.word {
      case .granted, .again, .created, .erased: return isAwaited
      case .standing, .view:
        guard let record = result.record, record.state == .completed else { return false }
        return provenUntil.map { record.since >= $0 } ?? true
      case .bare, .fact, .hits, .late, .walked, .mismatch, .none, .recipe, .unreadable: return false
      }
    case .refused, .redirected, .lost, .unwritten, .timedOut: return false
    }
  }

  mutating func lost() { self = ReplicaProof(maxShortfall: maxShortfall) }
}
