import Idempotency
import NIOCore
import Platform

extension RedisPipeline {
  /// Starts the timer, unless it fires earlier already. One timer serves all commands.
  func arm(at instant: BootInstant) {
    if let timer {
      guard instant < timer.at else { return }
      context.timers.stop(timer.token)
    }
    let span = max(instant - BootInstant.now, 0)
    timer = (context.timers.start(milliseconds: span.count) { [self] in expire() }, instant)
  }

  /// Ends the waits whose deadline has passed. If a command had the whole time-out on this connection, and nothing has
  /// arrived for as long, the connection is given up. Otherwise Redis replies, only later, and a new connection would
  /// have to wait just as long.
  private func expire() {
    let now = BootInstant.now
    let due = timer?.at ?? now
    timer = nil
    if isOverdue(at: now),
      case .readUntil(let later) = replyDeadline.verdict(due: due, now: now, hasUnread: link.hasUnread)
    {
      return arm(at: later)
    }
    let silentFrom = link.readAt + settings.timeout
    let isStuck = pending.first.map { max($0.overdueAt(settings.timeout), silentFrom) <= now } ?? false
    timeOut(at: now)
    if isStuck { return link.fail("Redis did not reply in \(settings.timeout.count) ms") }
    var next = pending.first.map { max($0.overdueAt(settings.timeout), silentFrom) }
    for command in pending where command.waiter != nil {
      next = min(next ?? command.deadline, command.deadline)
    }
    if let next { arm(at: next) }
  }

  private func isOverdue(at now: BootInstant) -> Bool {
    guard let first = pending.first else { return false }
    if first.overdueAt(settings.timeout) <= now { return true }
    return pending.contains { $0.waiter != nil && $0.deadline <= now }
  }

  /// Ends the waits whose deadline has passed. They are called once all are known: they may write other commands.
  private func timeOut(at now: BootInstant) {
    var due: [Pending] = []
    for index in pending.indices where pending[index].waiter != nil && pending[index].deadline <= now {
      due.append(pending[index])
      pending[index].waiter = nil
    }
    for command in due {
      command.finish(with: ScriptReply(ending: .timedOut, sentAt: command.sentAt), timeout: settings.timeout)
    }
  }
}

extension RedisPipeline {
  enum Waiter {
    case task(UnsafeContinuation<ScriptReply, Never>)
    case call((ScriptReply, CommandAttempts) -> Void)
    /// For the reply to a command that is not a script.
    case plain((RedisPlainCommand.Reply) -> Void)
    /// The same as a Swift value; `nil` if there is no reply.
    case value((RedisValue?) -> Void)
    /// For the reply to a command that waits for replicas.
    case replicas(ReplicaWaits)
  }

  struct Pending {
    /// The receiver; `nil` if nobody waits any more, and the reply only takes its place in the order.
    var waiter: Waiter?
    var deadline: BootInstant
    var sentAt: BootInstant
    /// A script's reply has the store's time.
    var isScript = false
    /// Whether the command's change counts only once replicas have it.
    var awaitsReplicas = false
    /// The record of a script, if replicas are demanded.
    var id: RecordID?

    func overdueAt(_ timeout: Milliseconds) -> BootInstant {
      if case .replicas(let waits) = waiter { sentAt + waits.maxWait } else { sentAt + timeout }
    }

    func finish(with reply: ScriptReply, timeout: Milliseconds) {
      switch waiter {
      case .task(let continuation): continuation.resume(returning: reply)
      case .call(let onReply): onReply(reply, CommandAttempts(timeout: timeout, deadline: deadline))
      case .plain(let onReply): onReply(.lost(reply.lossReason))
      case .value(let onReply): onReply(nil)
      case .replicas, nil: break
      }
    }
  }
}
