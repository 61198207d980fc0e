import Idempotency
import Wire

/// The waits of one connection for replicas: they decide when the waiting command is written, which scripts' replies
/// need one, and when claims are refused without a try. Pure.
///
/// `WAIT` covers every change that its connection has made before it, so that one serves all scripts of a batch. One at
/// a time is under way. Scripts that are written meanwhile are executed after it, and the next one covers them. What a
/// script has only read is covered once its connection has written something after it: Redis from 7.2 on and Valkey
/// wait for the last write of the connection.
struct ReplicaProof {
  /// The step after a reply to the waiting command.
  enum Next: Equatable {
    /// Write the waiting command again now.
    case wait
    /// Write it again after a pause, to learn when the replicas are back.
    case waitLater
    /// Write it with the next script.
    case rest
  }

  /// The pause between two waits while replicas are missing and no script is open, in which the connection serves
  /// other commands.
  static let pause: Milliseconds = 50

  /// The duration after which replicas count as missing: that of a call.
  private let maxShortfall: Milliseconds
  /// The time at which the waiting command was written; `nil` if it is not under way.
  private var waitingSince: BootInstant?
  /// The number of scripts that were written and whose changes are neither proven nor given up.
  private(set) var openCount = 0
  /// The time since which no wait was successful; `nil` if the last one was.
  private var missingSince: BootInstant?
  /// The store's time of a script all of whose predecessors are proven; `nil` if there is none.
  private var provenUntil: StoreInstant?

  init(maxShortfall: Milliseconds) { self.maxShortfall = maxShortfall }

  /// Takes a script that was appended to the connection's next write; or one that was written earlier, when its reply
  /// turns out to need a wait. A wait that is under way then was written after it, and covers it.
  mutating func wrote() { openCount += 1 }

  /// Takes scripts that were proven, given up, or changed nothing.
  mutating func settled(_ count: Int = 1) {
    openCount -= count
    invariant(openCount >= 0, "more scripts settled than were written")
  }

  /// Decides on the connection's next write. Returns whether the waiting command ends it, and then counts as written.
  mutating func begins(at now: BootInstant) -> Bool {
    guard waitingSince == nil, openCount > 0 || missingSince != nil else { return false }
    waitingSince = now
    return true
  }

  /// Takes the reply to the waiting command, before the scripts that it covers are settled.
  ///
  /// - Parameters:
  ///   - isMet: Whether enough replicas have everything that was changed before.
  ///   - last: The store's time in the last covered reply before it; `nil` if there was none.
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

  /// The step after `waited`, once the covered scripts are settled.
  var next: Next {
    if openCount > 0 { return .wait }
    return missingSince == nil ? .rest : .waitLater
  }

  /// Whether replicas have been missing for as long as a call may take, so that no claim would be granted now.
  func isShort(at now: BootInstant) -> Bool { missingSince.map { now - $0 >= maxShortfall } ?? false }

  /// Decides on a script's reply. Returns whether it counts only once replicas have what it changed, or what it reports
  /// as completed.
  ///
  /// A completion that is older than a proven script is proven with it.
  ///
  /// - Parameter isAwaited: Whether the script's own change needs replicas (`RedisScript.awaitsReplicas`).
  mutating func isNeeded(by reply: ScriptReply, isAwaited: Bool) -> Bool {
    // The store's clock was set back, so that its times no longer show which change came first.
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

  /// Takes the loss of the connection. The next one may lead to another server.
  mutating func lost() { self = ReplicaProof(maxShortfall: maxShortfall) }
}
