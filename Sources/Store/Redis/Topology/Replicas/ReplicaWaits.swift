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
