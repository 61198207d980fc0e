import Idempotency

extension RedisPipeline {
  /// The receiver of a copy's result.
  enum Waiter {
    case task(UnsafeContinuation<ScriptReply, Never>)
    case call((ScriptReply, CommandAttempts) -> Void)
    /// The receiver of the reply to a command that is not a script.
    case plain((RedisPlainCommand.Reply) -> Void)
    /// The same as a Swift value; `nil` if there is no reply.
    case value((RedisValue?) -> Void)
    /// The receiver of the reply to a command that waits for replicas.
    case replicas(ReplicaWaits)
  }

  /// A command without a reply.
  struct Pending {
    enum Kind {
      /// A script, whose reply has the store's time.
      case script
      case other
    }

    /// The receiver; `nil` if nobody waits any more. The reply may still arrive, and then only takes its place in the
    /// order.
    var waiter: Waiter?
    var deadline: BootInstant
    var sentAt: BootInstant
    /// The kind of command, which determines the form of its reply.
    let kind: Kind
    /// Whether the command may change what counts only once replicas have it.
    var awaitsReplicas = false
    /// The record of a script; `nil` if it has none, or if no replicas are demanded.
    var id: RecordID?

    /// The time until which Redis must have replied, or the connection is given up.
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
