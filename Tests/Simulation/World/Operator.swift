import Idempotency
import NIOCore
import Proxy
import Store

/// An operator, who changes records through a node: forgets and resolves them, and states outcomes of intents that were
/// carried out without Semel.
final class Operator: @unchecked Sendable {
  enum Command { case forget, resolve, put }

  private unowned let world: World
  private var requests: [String: String] = [:]

  init(of world: World) {
    self.world = world
    world.store.onDecision = { [unowned self] in announce($0) }
  }

  private var judge: Judge { world.judge }
  private var schedule: Schedule { world.schedule }

  /// Makes a record's first request known, which a statement needs.
  func know(_ record: String, _ request: String) {
    if requests[record] == nil { requests[record] = request }
  }

  func act(_ command: Command, at node: Node, _ dice: inout Dice) {
    guard let record = chosen(for: command, &dice),
      let id = record.id.flatMap({ RecordID(text: $0) })
    else { return }
    switch command {
    case .forget: forget(record, id, at: node)
    case .resolve:
      resolve(
        record, id, isApplied: dice.chance(0.6), amending: dice.chance(0.4), at: node)
    case .put: put(record, at: node)
    }
  }

  /// Mostly one with which nothing is under way, and for which the command is made; or one that has an outcome, which no
  /// decision may change.
  private func chosen(for command: Command, _ dice: inout Dice) -> Record? {
    let known = judge.known
    let contests = dice.chance(0.4)
    let fitting = known.filter { record in
      guard isQuiet(record), !record.isExcused else { return false }
      return switch command {
      case .forget: record.last != nil
      case .resolve where contests: record.outcome != nil || record.operatorsRun != nil
      case .resolve: record.last?.word == "outcome_unknown" || record.operatorsRun != nil
      case .put: record.last == nil && record.operatorsRun == nil && requests[record.name] != nil
      }
    }
    if !fitting.isEmpty, dice.chance(0.9) { return fitting[dice.below(fitting.count)] }
    guard command != .put, !known.isEmpty, dice.chance(0.3) else { return nil }
    return known[dice.below(known.count)]
  }

  /// Whether nothing is under way with a record, as far as anybody but the nodes can know. A node that stood still may
  /// begin with what its client has given up.
  private func isQuiet(_ record: Record) -> Bool {
    let thaw = world.nodes.map(\.machine.frozenUntil).max() ?? .start
    return record.isQuiet(at: schedule.now) && thaw + Rules.longestFlight.span < schedule.now
  }

  /// Runs a command at a node. Without a reply nobody knows whether it had an effect, or will.
  private func run<Reply: Sendable>(
    on record: Record, _ id: RecordID, at node: Node,
    _ command: @escaping @Sendable (Node.Records) async throws(StoreError) -> Reply,
    _ ended: @escaping (Reply, _ isQuiet: Bool) -> Void
  ) {
    if !isQuiet(record), !record.isExcused { judge.excuse(record) }
    record.commandsUnderWay += 1
    var hasEnded = false
    let end = { [self] (reply: Reply?, wasHeld: Bool) in
      guard !hasEnded else { return }
      hasEnded = true
      record.commandsUnderWay -= 1
      guard let reply else { return judge.excuse(record) }
      if wasHeld, !record.isExcused { judge.excuse(record) }
      // Whatever has happened meanwhile has excused it.
      ended(reply, !record.isExcused)
    }
    nonisolated(unsafe) let reported = end
    node.operate(on: id) { store in
      do throws(StoreError) {
        let standing = try await store.find(id, reading: .state)
        let reply = try await command(store)
        if case .inFlight = standing { reported(reply, true) } else { reported(reply, false) }
      } catch {
        reported(nil, false)
      }
    }
    schedule.after(Span(seconds: 5)) { end(nil, false) }
  }

  /// Has the caches above a store in memory hear of a change. A real store tells them itself.
  private func announce(_ id: RecordID) {
    guard world.redis == nil else { return }
    for node in world.nodes {
      schedule.after(world.store.trip()) { node.cache.invalidate(id) }
    }
  }

  private func forget(_ record: Record, _ id: RecordID, at node: Node) {
    let fence = Fence.span(outlasting: Milliseconds(5000))
    run(on: record, id, at: node) { store throws(StoreError) in
      try await store.forget(id, fence: fence)
    } _: { [judge] _, isQuiet in
      judge.forgot(record, isQuiet: isQuiet)
    }
  }

  /// Removes records of which nothing was sent yet.
  func forgetUnsent(at node: Node) {
    let waiting = judge.records.values.filter { record in
      record.deliveriesUnderWay > 0 && record.sent.isEmpty && !record.isItem && record.commandsUnderWay == 0
        && record.forgetsUnderWay == 0
    }
    for record in waiting.sorted(by: { $0.name < $1.name }).prefix(4) {
      guard let id = record.id.flatMap({ RecordID(text: $0) }) else { continue }
      judge.excuse(record)
      nonisolated(unsafe) let record = record
      node.operate(on: id) { [judge] store in
        guard case .inFlight(_, let attempt)? = try? await store.find(id, reading: .state),
          (try? await store.forget(id, fence: Fence.span(outlasting: Milliseconds(5000)))) == true
        else { return }
        judge.forgotClaim(of: record, attempt)
      }
    }
  }

  /// Removes a record that has its outcome, while it may be replayed.
  func forget(settled name: String, at node: Node) {
    guard let record = judge.records[name], isSettled(record) else { return }
    let fence = Fence.span(outlasting: Milliseconds(5000))
    judge.forgetting(record)
    change(record, at: node) { id, store throws(StoreError) in
      // A master that was replaced may lack the record.
      try await store.forget(id, fence: fence)
    } _: { [judge] in
      judge.forgot(settled: record)
    }
  }

  /// Corrects a decision, while it may be replayed.
  func amend(_ record: Record, at node: Node) {
    guard record.operatorsRun != nil, record.commandsUnderWay == 0, record.forgetsUnderWay == 0 else {
      return
    }
    let stated = judge.operatorsRun(of: record, payload(of: record))
    let completion = Self.completion(of: stated)
    judge.amending(record, as: stated)
    change(record, at: node) { id, store throws(StoreError) in
      try await store.resolve(id, as: .applied(completion), amending: true, attempt: nil) == .done
    } _: { [judge] in
      judge.amended(record, as: stated)
    }
  }

  /// Changes a record that may be replayed meanwhile.
  private func change(
    _ record: Record, at node: Node,
    _ command: @escaping @Sendable (RecordID, Node.Records) async throws(StoreError) -> Bool,
    _ ended: @escaping () -> Void
  ) {
    guard let id = record.id.flatMap({ RecordID(text: $0) }) else { return judge.excuse(record) }
    record.forgetsUnderWay += 1
    var hasEnded = false
    let end = { [self] (isDone: Bool) in
      guard !hasEnded else { return }
      hasEnded = true
      record.forgetsUnderWay -= 1
      guard isDone, !record.isExcused else { return judge.excuse(record) }
      ended()
    }
    nonisolated(unsafe) let reported = end
    node.operate(on: id) { store in
      do throws(StoreError) { reported(try await command(id, store)) } catch { reported(false) }
    }
    schedule.after(Span(seconds: 5)) { end(false) }
  }

  /// Whether nobody runs anything for a record, which has an outcome.
  private func isSettled(_ record: Record) -> Bool {
    guard let outcome = record.outcome, !record.isExcused, record.commandsUnderWay == 0,
      record.forgetsUnderWay == 0, !judge.mayBeLost(at: outcome.at)
    else { return false }
    return record.sent.count <= 1 && record.rule == .hold
  }

  private func resolve(
    _ record: Record, _ id: RecordID, isApplied: Bool, amending: Bool, at node: Node
  ) {
    let stated = judge.operatorsRun(of: record, payload(of: record))
    let resolution: Resolution = isApplied ? .applied(Self.completion(of: stated)) : .notApplied
    run(on: record, id, at: node) { store throws(StoreError) in
      try await store.resolve(id, as: resolution, amending: amending, attempt: nil)
    } _: { [judge] outcome, isQuiet in
      guard case .done = outcome else { return }
      if isApplied {
        judge.stated(record, as: stated, isQuiet: isQuiet, amending: amending)
      } else {
        judge.released(record, isQuiet: isQuiet, amending: amending)
      }
    }
  }

  /// Decides about a record that has ended, without any right to it, or corrects a decision.
  func contest(_ record: Record, at node: Node, _ dice: inout Dice) {
    guard let id = record.id.flatMap({ RecordID(text: $0) }) else { return }
    resolve(record, id, isApplied: dice.chance(0.6), amending: dice.chance(0.5), at: node)
  }

  private func put(_ record: Record, at node: Node) {
    guard let request = requests[record.name], let call = Identified.calls(of: request).first else {
      return
    }
    let payload = request.firstRange(of: "\r\n\r\n").map { String(request[$0.upperBound...]) }
    let stated = judge.operatorsRun(of: record, payload)
    let completion = Self.completion(of: stated)
    let claim = ClaimRequest(
      id: call.id, owner: .ofOperator(), fingerprint: call.fingerprint, lease: .seconds(1),
      takeOver: .never, unknownRetention: .seconds(86_400), remember: .seconds(86_400))
    run(on: record, call.id, at: node) { store throws(StoreError) -> Bool in
      guard case .granted(let claim) = try await store.claim(claim) else { return false }
      return try await store.complete(claim, with: completion).outcome == .done
    } _: { [judge] isDone, isQuiet in
      if isDone { judge.stated(record, as: stated, isQuiet: isQuiet) }
    }
  }

  /// The payload that a record certainly has; `nil` if that is not known.
  private func payload(of record: Record) -> String? {
    // The store may have lost that run's record, and have another one.
    record.isExcused || judge.hasLostChange(of: record)
      ? nil : record.runs.last { $0.end != .rejected }?.payload
  }

  private static func completion(of run: Run) -> Completion {
    let caller = run.record.prefix { $0 != "|" }
    let body =
      "{\"serial\": \(run.serial), \"caller\": \"\(caller)\", \"attempt\": 0, \"delivery\": 0}"
    run.content = body
    let response = RecordedResponse(
      status: 201, fields: ByteBuffer(string: "Content-Type: application/json\r\n"),
      body: ByteBuffer(string: body))
    // With less than half of its record's time, Redis has it under a key of its own.
    let retention = Milliseconds.seconds(run.serial % 2 == 0 ? 39_600 : 86_400)
    return Completion(outcome: .whole(response), retention: retention, remember: .seconds(86_400))
  }
}
