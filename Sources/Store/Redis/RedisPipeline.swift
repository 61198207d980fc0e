import Idempotency
import Loop
import NIOCore

/// The commands of one event loop that wait for their replies, in the order in which they were written. Confined to its
/// loop.
final class RedisPipeline: RedisLinkUser, @unchecked Sendable {
  /// The receiver of a copy's result.
  private enum Waiter {
    case task(UnsafeContinuation<RedisAnswer, Never>)
    case call((RedisAnswer, RedisCopies) -> Void)
    /// The receiver of the reply to a command that is not a script; it gets `nil` if there is no reply.
    case plain((RedisValue?) -> Void)
  }

  /// A command without a reply.
  private struct Pending {
    /// The receiver; `nil` if nobody waits any more. The reply may still arrive, and then only takes its place in the
    /// order.
    var waiter: Waiter?
    var deadline: BootInstant
    var sentAt: BootInstant

    func tell(_ answer: RedisAnswer, timeout: Milliseconds) {
      switch waiter {
      case .task(let continuation): continuation.resume(returning: answer)
      case .call(let tell): tell(answer, RedisCopies(timeout: timeout, deadline: deadline))
      case .plain(let tell): tell(nil)
      case nil: break
      }
    }
  }

  /// The time without replies after which a command reads Redis' time. That keeps the estimate of its clock good, and
  /// detects a dead connection.
  private static let keepAlive: TimeAmount = .seconds(10)

  let context: EventLoopContext
  let settings: RedisEndpointSettings
  let link: RedisLink
  let keys: RedisKeys
  private let hub: RedisHub
  private var pending = CircularBuffer<Pending>(initialCapacity: 64)
  /// The number of the last commands that are not written yet.
  private var unwritten = 0
  private var clock = RedisClock()
  /// The beginning of each script's command, by its case.
  private var heads: [[UInt8]] = []
  private var timer: (token: LoopTimers.Token, at: BootInstant)?
  private var patience = RedisPatience()
  private var heartbeat: RepeatedTask?
  private var lastReplyAt = BootInstant(nanoseconds: 0)
  /// The time of the replies that are being read; 0 before the first of them.
  private var receivedAt = BootInstant(nanoseconds: 0)
  private var connectionWaiters: [Signal] = []
  /// The time from which a walk over the keys may continue.
  var nextStepAt = BootInstant(nanoseconds: 0)
  /// The reason for which no claim may be granted on this connection; `nil` if claims may be granted.
  private(set) var refusal: String? {
    didSet { publishStatus() }
  }
  /// The reason for which no claim may be granted yet, whatever the connection; `nil` if claims may be granted.
  private var hold: String?
  /// Whether `hold` is final, so that it is reported even while Redis is unreachable.
  private var isAdmissionRefused = false

  init(context: EventLoopContext, link: RedisLink, hub: RedisHub) {
    self.context = context
    self.link = link
    self.hub = hub
    settings = link.settings
    keys = RedisKeys(namespace: settings.namespace)
    hold = settings.awaitsAdmission ? "the configuration was not yet compared with its namespace's" : nil
    link.user = self
  }

  /// Allows claims, or refuses them for the given reason.
  func admit(unless reason: String?) {
    hold = reason
    isAdmissionRefused = reason != nil
    if isAdmissionRefused { publishStatus() }
  }

  private func publishStatus() {
    if let reason = refusal ?? (isAdmissionRefused ? hold : nil) {
      link.counters.monitor.refuses(reason)
    } else {
      link.counters.monitor.serves()
    }
  }

  func start() {
    link.start()
    heartbeat = context.loop.scheduleRepeatedTask(
      initialDelay: Self.keepAlive, delay: Self.keepAlive
    ) { _ in self.beat() }
  }

  func close() {
    heartbeat?.cancel()
    link.close()
  }

  private static var now: BootInstant { BootInstant(nanoseconds: bootTimeNanoseconds()) }
}

extension RedisPipeline {
  /// Runs a script on a record within one call's time-out, and repeats it if its reply was lost.
  ///
  /// - Parameters:
  ///   - script: The script.
  ///   - id: The record; `nil` if the script takes no record's keys.
  ///   - capacity: The maximum number of bytes that `write` writes.
  ///   - copies: The results of earlier copies of the command, if there are any.
  ///   - write: Writes the arguments after the keys. It gets the call's deadline by the store's clock.
  func ask(
    _ script: RedisScript, _ id: RecordID?, capacity: Int = 0, after copies: RedisCopies? = nil,
    _ write: (inout RedisCommandWriter, StoreInstant) -> Void = { _, _ in }
  ) async throws(StoreError) -> RedisAnswer {
    var copies = copies ?? RedisCopies(timeout: settings.timeout, deadline: Self.now + settings.timeout)
    do {
      return try await answer(to: script, id, after: &copies, capacity: capacity, write)
    } catch {
      // The caller releases the claim next, which must come after the deadline of its copies.
      if script == .claim, case .fateUnknown = error { await outlast(copies.deadline) }
      throw error
    }
  }

  @inline(never)
  private func answer(
    to script: RedisScript, _ id: RecordID?, after copies: inout RedisCopies, capacity: Int,
    _ write: (inout RedisCommandWriter, StoreInstant) -> Void
  ) async throws(StoreError) -> RedisAnswer {
    while true {
      copies.beginAnew(at: Self.now)
      guard copies.areNone || Self.now < copies.deadline else {
        throw copies.error("Redis was too slow to take the command")
      }
      if script == .claim, isAdmissionRefused, let hold { throw copies.refused(hold) }
      try await connection(by: copies.deadline, copies)
      if script == .claim, let refusal = hold ?? refusal { throw copies.refused(refusal) }
      var answer = await withUnsafeContinuation { waiter in
        append(script, id, capacity, copies.deadline, .task(waiter), isWhole: copies.sendsWhole, write)
      }
      if copies.lost != nil { answer.copiedUntil = copies.deadline }
      if try copies.answered(answer.ending) { return answer }
    }
  }

  /// Writes one copy of a script's command without a task that waits. Calls `tell` with the result, on this loop and
  /// after this method has returned. False if no command can be written now.
  func askOnce(
    _ script: RedisScript, _ id: RecordID?, capacity: Int,
    _ write: (inout RedisCommandWriter, StoreInstant) -> Void,
    tell: @escaping (RedisAnswer, RedisCopies) -> Void
  ) -> Bool {
    guard link.isUp, refusal == nil, hold == nil else { return false }
    append(script, id, capacity, Self.now + settings.timeout, .call(tell), write)
    return true
  }

  /// Writes a command that is not a script, and calls `tell` with its reply, or with `nil` if there is none.
  func askPlainly(_ words: [String], tell: @escaping (RedisValue?) -> Void) {
    guard link.isUp else { return tell(nil) }
    link.append { $0.writeCommand(words) }
    let now = Self.now
    pending.append(Pending(waiter: .plain(tell), deadline: now + settings.timeout, sentAt: now))
    unwritten += 1
    arm(at: now + settings.timeout)
  }

  /// Waits until no copy of a claim can be executed any more.
  func outlast(_ deadline: BootInstant) async {
    let left = deadline - Self.now
    if left > 0 { await context.sleep(milliseconds: left.count + 1) }
  }

  /// Waits for a connection until the call's deadline. Fails at once if the outage has already lasted for longer than a
  /// call.
  private func connection(by deadline: BootInstant, _ copies: RedisCopies) async throws(StoreError) {
    while !link.isUp {
      let left = deadline - Self.now
      guard left > 0, !link.isOutageLong else {
        throw copies.error(link.outage?.reason ?? "Redis is not connected yet")
      }
      let signal = Signal(timers: context.timers)
      connectionWaiters.append(signal)
      guard case .timedOut = await signal.wait(milliseconds: left.count) else { continue }
      connectionWaiters.removeAll { $0 === signal }
    }
  }

  @inline(never)
  private func append(
    _ script: RedisScript, _ id: RecordID?, _ capacity: Int, _ deadline: BootInstant,
    _ waiter: Waiter?, isWhole: Bool = false,
    _ write: (inout RedisCommandWriter, StoreInstant) -> Void
  ) {
    // Otherwise replies would go to the wrong commands.
    context.loop.preconditionInEventLoop()
    precondition(link.isUp, "RedisPipeline: a command without a connection")
    let now = Self.now
    // Without an estimate, the claim is refused as late, and its reply brings the time.
    let limit = clock.estimate(at: now).map { $0 + max(deadline - now, 0) } ?? StoreInstant(milliseconds: 0)
    let head = isWhole ? RedisKeys.wholeHead(script) : heads[script.rawValue]
    link.append { buffer in
      buffer.writeCommand(capacity: head.count + keys.capacity + capacity) { writer in
        writer.bytes(head)
        if let id { keys.write(id, to: &writer) }
        write(&writer, limit)
      }
    }
    link.counters.countRoundTrip()
    pending.append(Pending(waiter: waiter, deadline: deadline, sentAt: now))
    unwritten += 1
    arm(at: deadline)
  }

  private func beat() {
    guard link.isUp, Self.now - lastReplyAt >= Milliseconds(Self.keepAlive.nanoseconds / 2_000_000) else {
      return
    }
    append(.clock, nil, 0, Self.now + settings.timeout, nil) { _, _ in }
  }
}

extension RedisPipeline {
  func linkIsUp(_ greeting: RedisGreeting) -> String? {
    precondition(pending.isEmpty, "RedisPipeline: commands of the connection before")
    lastReplyAt = Self.now
    clock.reset()
    if let now = greeting.now { clock.told(now, at: lastReplyAt) }
    heads = zip(RedisScript.allCases, greeting.digests).map { RedisKeys.head($0, digest: $1) }
    if let epoch = greeting.epoch, let loss = hub.epoch.lost(by: epoch) { hub.report(loss) }
    judge(doubts: greeting.doubts, loss: hub.epoch.loss)
    if refusal == nil { for doubt in greeting.doubts { hub.warn(doubt) } }
    wakeConnectionWaiters()
    return refusal
  }

  /// Takes the findings about this Redis. With `require_durable`, no claim is granted on a Redis that may lose records,
  /// or has lost them.
  func judge(doubts: [String], loss: String?) {
    var reason: String?
    if settings.requireDurable {
      reason =
        loss.map { "require_durable is set, and \($0)" }
        ?? doubts.first.map { "require_durable is set, and this Redis may lose records: \($0)" }
    }
    refusal = reason
    if let reason { hub.refuse(reason) }
  }

  func linkReceived(_ reply: borrowing HiredisReply) {
    if receivedAt.nanoseconds == 0 { receivedAt = Self.now }
    guard let command = pending.popFirst() else {
      return link.fail("Redis sent a reply that nobody asked for")
    }
    if case .plain(let tell) = command.waiter { return tell(reply.value) }
    var answer = RedisAnswer(reply)
    answer.sentAt = command.sentAt
    if answer.now.milliseconds > 0 { clock.told(answer.now, at: receivedAt) }
    command.tell(answer, timeout: settings.timeout)
  }

  func linkReadAll() {
    guard receivedAt.nanoseconds != 0 else { return }
    patience.hasRead()
    lastReplyAt = receivedAt
    receivedAt = BootInstant(nanoseconds: 0)
  }

  func linkWrote() { unwritten = 0 }

  func linkIsDown(_ reason: String) {
    clock.reset()
    let orphans = pending
    let written = orphans.count - unwritten
    pending.removeAll(keepingCapacity: true)
    unwritten = 0
    for (index, orphan) in orphans.enumerated() {
      orphan.tell(
        RedisAnswer(ending: index < written ? .lost(reason) : .unwritten(reason)), timeout: settings.timeout)
    }
    wakeConnectionWaiters()
  }

  private func wakeConnectionWaiters() {
    let waiters = connectionWaiters
    connectionWaiters = []
    for waiter in waiters { waiter.set() }
  }
}

extension RedisPipeline {
  /// Starts the timer, unless it fires earlier already. One timer serves all commands, so that most commands and
  /// replies leave it unchanged.
  private func arm(at instant: BootInstant) {
    if let timer {
      guard instant < timer.at else { return }
      context.timers.stop(timer.token)
    }
    let span = max(instant - Self.now, 0)
    timer = (context.timers.start(milliseconds: span.count) { [self] in expire() }, instant)
  }

  /// Ends the waits whose deadline has passed. If a command had the whole time-out on this connection, the connection
  /// is given up; if a repeated command had only the rest of it, the connection is kept.
  private func expire() {
    let now = Self.now
    let due = timer?.at ?? now
    timer = nil
    if isOverdue(at: now),
      case .readUntil(let later) = patience.judge(due: due, now: now, hasUnread: link.hasUnread)
    {
      return arm(at: later)
    }
    if let first = pending.first, first.sentAt + settings.timeout <= now {
      for index in pending.indices where pending[index].deadline <= now { timeOut(index) }
      return link.fail("Redis did not answer in \(settings.timeout.count) ms")
    }
    var next = pending.first.map { $0.sentAt + settings.timeout }
    for index in pending.indices where pending[index].waiter != nil {
      if pending[index].deadline <= now {
        timeOut(index)
      } else {
        next = min(next ?? pending[index].deadline, pending[index].deadline)
      }
    }
    if let next { arm(at: next) }
  }

  private func isOverdue(at now: BootInstant) -> Bool {
    guard let first = pending.first else { return false }
    if first.sentAt + settings.timeout <= now { return true }
    return pending.contains { $0.waiter != nil && $0.deadline <= now }
  }

  private func timeOut(_ index: CircularBuffer<Pending>.Index) {
    let command = pending[index]
    pending[index].waiter = nil
    command.tell(RedisAnswer(ending: .timedOut, sentAt: command.sentAt), timeout: settings.timeout)
  }
}
