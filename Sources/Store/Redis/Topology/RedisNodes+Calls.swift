import Idempotency
import Platform
import Wire

/// The key of a command, which determines the node.
enum RedisRoute {
  case record(RecordID)
  case key(String)
  /// One certain node of a cluster, with the keys of slots on their way to it.
  case node(ServerAddress)
  /// Any node.
  case any

  var slot: Int? {
    switch self {
    case .record(let id): SlotMap.slot(of: id)
    case .key(let key): SlotMap.slot(of: key)
    case .node, .any: nil
    }
  }

  /// Whether `ASKING` precedes the command, for the keys of a slot that is on its way to the node.
  var isAsking: Bool {
    if case .node = self { true } else { false }
  }

  var id: RecordID? {
    if case .record(let id) = self { id } else { nil }
  }
}

extension RedisNodes {
  /// Runs a script within one call's time-out, and repeats it if its reply was lost. Memory for `capacity` bytes of
  /// arguments is reserved beforehand.
  func run(
    _ script: RedisScript, _ route: RedisRoute, capacity: Int = 0, after copies: CommandAttempts? = nil,
    _ write: (inout RedisCommandWriter, _ deadline: StoreInstant) -> Void = { _, _ in }
  ) async throws(StoreError) -> ScriptReply {
    var copies = copies ?? newAttempts()
    do {
      return try await reply(to: script, route, after: &copies, capacity: capacity, write)
    } catch {
      // The caller releases the claim next, after the deadline of its copies.
      if script == .claim, case .fateUnknown = error { await waitUntilPast(copies.deadline) }
      throw error
    }
  }

  private static let pauseRefusal =
    "new claims wait until running requests have renewed their leases: another Redis has taken over, or its clock was set"

  @inline(never)
  private func reply(
    to script: RedisScript, _ route: RedisRoute, after copies: inout CommandAttempts, capacity: Int,
    _ write: (inout RedisCommandWriter, _ deadline: StoreInstant) -> Void
  ) async throws(StoreError) -> ScriptReply {
    while true {
      copies.beginAnew(at: BootInstant.now)
      let (pipeline, isAsking) = try await node(route, script, &copies)
      if script == .claim, let left = try Self.pause(at: pipeline, after: copies) {
        await context.sleep(milliseconds: left.count + 1)
        continue
      }
      var reply = await withUnsafeContinuation { waiter in
        pipeline.append(
          script, route.id, capacity, copies.deadline, .task(waiter), isWhole: copies.sendsWhole,
          isAsking: isAsking, write)
      }
      if copies.lost != nil { reply.copiedUntil = copies.deadline }
      guard try copies.ended(reply.ending) else { continue }
      // The caller of a claim gives it back before it throws.
      if let shortage = reply.shortage, script != .claim { throw Self.error(of: script, shortage) }
      return reply
    }
  }

  private static func error(of script: RedisScript, _ shortage: String) -> StoreError {
    script == .find ? .refused(shortage) : .fateUnknown(shortage)
  }

  /// The time for which a claim waits at a Redis that takes no new ones yet.
  @inline(never)
  private static func pause(
    at pipeline: RedisPipeline, after copies: CommandAttempts
  ) throws(StoreError) -> Milliseconds? {
    let now = BootInstant.now
    switch pipeline.admission(at: now) {
    case .open: return nil
    case .refused(let reason): throw copies.refused(reason.text)
    case .paused(let end):
      guard end < copies.deadline else { throw copies.refused(pauseRefusal) }
      return end - now
    }
  }

  /// Writes one copy of a claim. Calls `onReply` on this loop, after this method has returned. False if no command can
  /// be written now.
  func startClaim(
    _ request: ClaimRequest, _ write: (inout RedisCommandWriter, _ deadline: StoreInstant) -> Void,
    onReply: @escaping (ScriptReply, CommandAttempts) -> Void
  ) -> Bool {
    let now = BootInstant.now
    guard let pipeline = single ?? mapped(SlotMap.slot(of: request.id)), pipeline.link.isUp,
      case .open = pipeline.admission(at: now)
    else { return false }
    pipeline.append(
      .claim, request.id, RedisCommandWriter.capacity(of: request), now + settings.timeout, .call(onReply),
      at: now, write)
    return true
  }

  @inline(never)
  func run(_ command: RedisPlainCommand, _ id: RecordID) async throws(StoreError) -> RedisPlainCommand.Reply {
    var copies = newAttempts()
    while true {
      let (pipeline, isAsking) = try await node(.record(id), nil, &copies)
      let reply = await withUnsafeContinuation { waiter in
        pipeline.append(command, copies.deadline, isAsking: isAsking) { waiter.resume(returning: $0) }
      }
      switch reply {
      case .refused(let text): try takeRefusal(text, at: pipeline, &copies)
      case .lost(let reason): guard BootInstant.now < copies.deadline else { throw .unavailable(reason) }
      case .value, .integer, .none: return reply
      }
    }
  }

  /// Takes the refusal of a copy, which is written again: to the server's successor, or to the node that has its key.
  func takeRefusal(
    _ text: String, at pipeline: RedisPipeline, _ copies: inout CommandAttempts
  ) throws(StoreError) {
    if !pipeline.endsByDemotion(text) { try takeRedirection(text, at: pipeline, &copies) }
  }

  private func takeRedirection(
    _ text: String, at pipeline: RedisPipeline, _ copies: inout CommandAttempts
  ) throws(StoreError) {
    guard let refusal = pipeline.refusal(in: text) else { throw RedisRefusal.error(text) }
    refused(refusal)
    _ = try copies.ended(.redirected(refusal))
  }

  func newAttempts() -> CommandAttempts {
    CommandAttempts(timeout: settings.timeout, deadline: BootInstant.now + settings.timeout)
  }

  /// Writes a command that nobody waits for, if there is a connection.
  func send(_ command: RedisPlainCommand, _ id: RecordID) {
    guard let pipeline = single ?? mapped(SlotMap.slot(of: id)), pipeline.link.isUp else { return }
    pipeline.append(command, BootInstant.now + settings.timeout) { _ in }
  }

  /// Publishes at each master of a cluster, whose own connections to the others may be cut while all serve.
  func publish(_ message: String, to channel: String) {
    guard single == nil else { return }
    for master in masters { master.query(["PUBLISH", channel, message]) { _ in } }
  }

  /// The reply to a command that is no script, which is not repeated.
  func reply(to words: [String], _ route: RedisRoute) async throws(StoreError) -> RedisValue {
    var copies = newAttempts()
    while true {
      let (pipeline, isAsking) = try await node(route, nil, &copies)
      let reply = await withUnsafeContinuation { continuation in
        pipeline.query(words, isAsking: isAsking) { continuation.resume(returning: $0) }
      }
      guard let reply else { throw .fateUnknown("Redis gave no reply") }
      guard case .error(let text) = reply else { return reply }
      try takeRedirection(text, at: pipeline, &copies)
    }
  }

  /// Waits for a connection to the node of the next copy. Fails at once if the outage has lasted for longer than a
  /// call.
  @inline(never)
  func node(
    _ route: RedisRoute, _ script: RedisScript?, _ copies: inout CommandAttempts
  ) async throws(StoreError) -> (RedisPipeline, isAsking: Bool) {
    guard copies.areNone || BootInstant.now < copies.deadline else { throw copies.error(copies.slowness) }
    switch copies.takeNext() {
    case .byMap: break
    case .later(let pause):
      await context.sleep(milliseconds: max(0, min(pause, copies.deadline - BootInstant.now)).count)
    case .fail(let reason): throw copies.error(reason)
    case .asking(let address):
      return (try await connected(copies, script) { pipeline(at: address) }, true)
    }
    if let single { return (try await connected(copies, script) { single }, false) }
    let slot = route.slot
    return (
      try await connected(copies, script) {
        switch route {
        case .node(let address): pipeline(at: address)
        case .record, .key: slot.flatMap(mapped)
        case .any: all.first { $0.link.isUp } ?? all.first
        }
      }, route.isAsking
    )
  }

  @inline(never)
  private func connected(
    _ copies: CommandAttempts, _ script: RedisScript?, _ find: () -> RedisPipeline?
  ) async throws(StoreError) -> RedisPipeline {
    while true {
      let found = find()
      if script == .claim, case .refused(let reason) = comparison { throw copies.refused(reason) }
      if let found, found.link.isUp { return found }
      // In milliseconds, as the wait: what is left of the last one would go round in a circle.
      guard copies.deadline - BootInstant.now > 0, !isOutageLong(found) else {
        throw copies.error(outageReason(found))
      }
      await change(by: copies.deadline)
    }
  }

  private func isOutageLong(_ found: RedisPipeline?) -> Bool {
    if let found { return found.link.isOutageLong }
    return map == nil && !all.isEmpty && all.allSatisfy(\.link.isOutageLong)
  }

  private func outageReason(_ found: RedisPipeline?) -> String {
    if let found { return found.link.outage?.reason ?? "Redis is not connected yet" }
    if map != nil { return "no node of the cluster serves the record's slot" }
    if let mapFault { return mapFault }
    let reasons = all.compactMap { $0.link.outage?.reason }
    return reasons.isEmpty
      ? "no node of the cluster has named the slots' masters yet" : reasons.sorted().joined(separator: "; ")
  }
}
