import Idempotency
import Platform
import Wire

/// The replies of one connection that are held until enough replicas have what the scripts changed. Confined to its
/// loop. One that is held until its call's deadline is passed on with the shortage; with the connection it counts as
/// lost.
final class ReplicaWaits {
  private struct Held {
    var reply: ScriptReply
    let id: RecordID?
    let deadline: BootInstant
    /// Whether the connection has written since.
    var isCovered: Bool
    let pass: (ScriptReply) -> Void
  }

  struct Commands {
    /// A record of which something must be written first.
    let touch: RecordID?
    let wait: [String]
  }

  /// The part of a call's time-out for which one command waits: a connection executes nothing else meanwhile, such as a
  /// release, which must be recorded even without replicas.
  private static let slices: Int64 = 4

  let demand: ReplicaDemand
  private let timeout: Milliseconds
  private let context: EventLoopContext
  private var proof: ReplicaProof
  private var held: [Held] = []
  private var waitedAt = BootInstant(nanoseconds: 0)
  private var timer: LoopTimers.Token?
  /// The reason for which no claim would be granted now.
  private(set) var shortage: String?
  var didChange: () -> Void = {}
  var needsWrite: () -> Void = {}

  init(_ demand: ReplicaDemand, timeout: Milliseconds, context: EventLoopContext) {
    self.demand = demand
    self.timeout = timeout
    self.context = context
    proof = ReplicaProof(maxShortfall: timeout)
  }

  var maxWait: Milliseconds { timeout + .seconds(1) }

  func wrote() { proof.wrote() }

  func dropped() { proof.settled() }

  /// The commands that end the connection's next write, and count as written.
  func commands(at now: BootInstant) -> Commands? {
    guard proof.begins(at: now) else { return nil }
    waitedAt = now
    return Commands(
      touch: held.first { !$0.isCovered && $0.id != nil }?.id, wait: demand.words(for: timeout / Self.slices))
  }

  /// Takes the reply to the write for what was only read. If Redis refuses it, nothing that was only read can be proven
  /// now. If the record is another one by now, or elsewhere, what was read counts as lost: the script is repeated.
  func touched(_ id: RecordID, _ ending: ScriptReply.Ending) {
    switch ending {
    case .done: coverAll()
    case .refused(let text):
      let reason = "Redis takes no change, without which no replica proves to have an outcome: \(text)"
      passUncovered { $0.shortage = reason }
    case .result, .redirected, .timedOut:
      passUncovered(of: id) { $0.ending = .lost("the record has changed since it was read") }
    // Everything that was held is passed on with the connection's end.
    case .lost, .unwritten: break
    }
  }

  private func passUncovered(of id: RecordID? = nil, _ change: (inout ScriptReply) -> Void) {
    let isDue = { (entry: Held) in !entry.isCovered && (id == nil || entry.id == id) }
    let due = held.filter(isDue)
    held.removeAll(where: isDue)
    proof.settled(due.count)
    for var entry in due {
      change(&entry.reply)
      entry.pass(entry.reply)
    }
  }

  private func coverAll() {
    for index in held.indices { held[index].isCovered = true }
  }

  /// Holds a script's reply, if it counts only with enough replicas. False if it counts as it is.
  func hold(
    _ reply: ScriptReply, of id: RecordID?, isAwaited: Bool, until deadline: BootInstant,
    _ pass: @escaping (ScriptReply) -> Void
  ) -> Bool {
    guard proof.isNeeded(by: reply, isAwaited: isAwaited) else {
      if isAwaited { proof.settled() }
      return false
    }
    held.append(Held(reply: reply, id: id, deadline: deadline, isCovered: false, pass: pass))
    // Any other script has written.
    if reply.result?.word != .standing, reply.result?.word != .view { coverAll() }
    if !isAwaited {
      proof.wrote()
      needsWrite()
    }
    invariant(held.count <= proof.openCount, "replies are held of scripts that do not count as open")
    return true
  }

  /// Takes the reply to the waiting command. Returns the microseconds of a successful wait, `nil` for missing replicas,
  /// or the reason for which the connection cannot be used.
  func replied(_ reply: RedisValue, at now: BootInstant) -> Result<Int64?, RedisProtocolError> {
    guard let isMet = demand.isMet(by: reply) else {
      let text =
        if case .error(let text) = reply { text } else { "ERR an unexpected reply to \(demand.command)" }
      return .failure(RedisProtocolError(text: text))
    }
    proof.waited(isMet: isMet, last: held.last(where: \.isCovered)?.reply.now)
    let isReady = { (entry: Held) in isMet && entry.isCovered || entry.deadline <= now }
    let ready = held.filter(isReady)
    held.removeAll(where: isReady)
    proof.settled(ready.count)
    publish(at: now)
    for var entry in ready {
      if !isMet || !entry.isCovered { entry.reply.shortage = demand.shortage }
      entry.pass(entry.reply)
    }
    scheduleNext()
    return .success(isMet ? (now.nanoseconds - waitedAt.nanoseconds) / 1000 : nil)
  }

  private func scheduleNext() {
    switch proof.next {
    case .rest: break
    case .wait: needsWrite()
    case .waitLater:
      guard timer == nil else { return }
      timer = context.timers.start(milliseconds: ReplicaProof.pause.count) { [self] in
        timer = nil
        needsWrite()
      }
    }
  }

  private func publish(at now: BootInstant) {
    let reason = proof.isShort(at: now) ? demand.shortage : nil
    guard reason != shortage else { return }
    shortage = reason
    didChange()
  }

  func lost(_ reason: String) {
    let orphans = held
    held = []
    proof.lost()
    if let timer { context.timers.stop(timer) }
    timer = nil
    shortage = nil
    for var orphan in orphans {
      orphan.reply.ending = .lost(reason)
      orphan.pass(orphan.reply)
    }
  }
}

/// The copies of a change that must exist before it counts.
public struct ReplicaDemand: Sendable, Equatable {
  /// The number of replicas that must have the change.
  public var replicas: Int
  /// Whether the master and each of these replicas must have it on disk (`WAITAOF`).
  public var isOnDisk: Bool

  /// Creates a demand; `nil` if a change counts as soon as the master has it in memory.
  public init?(replicas: Int, isOnDisk: Bool = false) {
    guard replicas > 0 || isOnDisk else { return nil }
    self.replicas = replicas
    self.isOnDisk = isOnDisk
  }

  var command: String { isOnDisk ? "WAITAOF" : "WAIT" }

  func words(for span: Milliseconds) -> [String] {
    // Redis reads 0 as no limit.
    let span = "\(max(1, span.count))"
    return isOnDisk ? ["WAITAOF", "1", "\(replicas)", span] : ["WAIT", "\(replicas)", span]
  }

  var trial: [String] { isOnDisk ? ["WAITAOF", "1", "0", "1"] : ["WAIT", "0", "1"] }

  /// Whether a reply to the waiting command says that enough copies exist; `nil` if it is another one.
  func isMet(by reply: RedisValue) -> Bool? {
    switch reply {
    case .integer(let count) where !isOnDisk: return count >= replicas
    case .array(let counts) where isOnDisk && counts.count == 2:
      guard case .integer(let local) = counts[0], case .integer(let remote) = counts[1] else { return nil }
      return local >= 1 && remote >= replicas
    default: return nil
    }
  }

  func isTrial(_ reply: RedisValue) -> Bool { isMet(by: reply) != nil }

  var shortage: String {
    let replicas = "\(replicas) replica\(replicas == 1 ? "" : "s")"
    return switch (isOnDisk, self.replicas) {
    case (true, 0): "Redis has not written the newest changes to its disk (store.durable)"
    case (true, _):
      "fewer than \(replicas) of Redis have the newest changes on disk (store.replicas, store.durable)"
    case (false, _): "fewer than \(replicas) of Redis have the newest changes (store.replicas)"
    }
  }
}

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
