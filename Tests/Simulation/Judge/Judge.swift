import Idempotency
import NIOCore

/// Holds what clients, network and backend see to the rules of `Tests/Faults`, while it happens. It knows the contract,
/// and nothing of Semel's implementation.
final class Judge: @unchecked Sendable {
  /// The delay between an event and its observation.
  static let slack = Span(seconds: 0.01)

  let schedule: Schedule
  private(set) var records: [String: Record] = [:]
  private(set) var violations: [Violation] = []
  var excused = 0
  var serials: [Int: Run] = [:]
  private var owners: [String: String] = [:]
  /// Whether each record keeps what has happened to it, for a person to read.
  var keepsTimeline = false
  /// When the store failed, and when a node ended.
  var storeFailures: [Moment] = []
  var nodeEnds: [Moment] = []
  /// The moments at which something disturbed a node, or its way to the real store.
  var disturbances: [Moment] = []
  /// Whether nodes come to a stand at any moment, not only while they are frozen.
  var standsStill = false
  /// When each node was killed, and when one did not reach the store while others did, or all did not for a moment.
  var deaths: [Int: [Moment]] = [:]
  var cutOffs: [Moment] = []
  var hiccups: [Moment] = []
  /// When no node, or one alone, could do anything with the store, and the last refusal by each node for that.
  var outages: [(from: Moment, to: Moment, node: Int?)] = []
  var refusedAt: [Int: (begun: Moment, ended: Moment)] = [:]
  /// The nodes whose only loop has had an outcome stored, each since its last start.
  var acquainted: [Int: Moment] = [:]
  var hasOneLoop: [Int: Bool] = [:]
  /// When a node began to stop in order.
  var drains: [Moment] = []
  /// The moments at which the clocks of the store's machines were set.
  var clockSteps: [Moment] = []
  /// Those of them by which it was set back.
  var clockSetBacks: [Moment] = []
  /// The last start of each node.
  var nodeStarts: [Int: Moment] = [:]
  /// The servers of the real store, which may lose what they do not promise to keep; `nil` with one in memory.
  var redis: RedisServers?
  /// When the store forgot all outcomes, and when each node had its last outcome stored before, and first sent something
  /// after.
  var forgotAllAt: Moment?
  var recordedAt: [Int: Moment] = [:]
  var sentSince: [Int: Moment] = [:]
  /// The first attempts that follow such a loss are above.
  static let nextGeneration = 1_000_000_000
  /// The claims that nodes have lately sent to Redis; `nil` if nobody asks for them.
  var claims: SentClaims?
  /// Whether something may have been lost on the way to the backend or back.
  var hasCuts = false
  /// Whether replies of the store get lost, or late, at any moment.
  var losesReplies = false
  /// Whether all faults are over.
  var isCalm = false
  /// The names of the records that the judge knows by their ids in the store.
  private var names: [String: String] = [:]
  /// Whether nodes stand still at times.
  var hasStandstills = false
  /// The entries of nodes' logs that name no record.
  private(set) var lines: [String] = []
  /// The number of batches of which not all has left.
  private(set) var partialBatches = 0
  private(set) var executions = 0
  var deliveries = 0

  init(on schedule: Schedule) { self.schedule = schedule }

  var now: Moment { schedule.now }

  func begin(_ name: String, _ rule: Rule, id: String? = nil) {
    guard records[name] == nil else { return }
    records[name] = Record(name, rule, id: id)
    if let id { names[id] = name }
  }

  /// The record that the store has under an id; `nil` until the judge knows that.
  func record(of id: RecordID) -> Record? { record(of: id.text) }
  func record(of id: String) -> Record? { names[id].flatMap { records[$0] } }

  func record(_ name: String) -> Record? {
    guard let record = records[name] else { return nil }
    record.lastEvent = now
    if record.commandsUnderWay > 0, !record.isExcused { excuse(record) }
    return record
  }

  func note(_ record: Record?, _ text: @autoclosure () -> String) {
    guard keepsTimeline, let record else { return }
    let milliseconds = Double(now.nanoseconds / 1000) / 1000
    record.timeline.append("\(milliseconds) ms  \(text())")
  }

  /// Keeps what a node has logged about a record, or about none.
  func log(_ text: String, about id: String?) {
    let milliseconds = Double(now.nanoseconds / 1000) / 1000
    guard let id else { return lines.append("\(milliseconds) ms  \(text)") }
    note(records.values.first { $0.id == id }, text)
  }

  /// The records of which anything was sent, in the order of their names.
  var known: [Record] {
    records.values.filter { $0.id != nil }.sorted { $0.name < $1.name }
  }

  /// Takes the breach of a rule.
  ///
  /// - Parameter mayBeLost: Whether a store explains it that has lost a change of the record.
  func violation(_ rule: Int, _ record: Record?, _ text: String, mayBeLost: Bool = true) {
    if mayBeLost, let record, isExcused(record, text) { return }
    note(record, "VIOLATION of rule \(rule): \(text)")
    violations.append(Violation(rule: rule, record: record?.name ?? "", text: text, at: now))
    schedule.note(rule)
  }
}

// 1 and 4: what was sent, and what ran.
extension Judge {
  /// Reads the requests that a node sends on a connection to the backend, at the moment at which they leave.
  func follow(_ wire: Wire, from node: End, of number: Int, isHTTP2: Bool) {
    var reader: any RequestReader = isHTTP2 ? HTTP2Reader() : HTTP1RequestReader()
    var last = Int.max
    var requests: [(message: HTTPMessage, stream: Int)] = []
    wire.onSend = { [unowned self, unowned node] end, bytes in
      guard end === node else { return }
      for event in reader.feed(bytes) {
        guard let (message, stream) = note(event, by: number), isHTTP2 else { continue }
        if stream > last { refused(message) } else { requests.append((message, stream)) }
      }
    }
    wire.onLeave = { [unowned self] stream in
      last = stream
      for request in requests where request.stream > last { refused(request.message) }
      requests.removeAll { $0.stream > last }
    }
  }

  /// Notes a request that has left. The items of a batch are known once it is whole.
  private func note(
    _ event: RequestEvent, by node: Int
  ) -> (message: HTTPMessage, stream: Int)? {
    switch event {
    case .head(let head, let stream):
      if head.path != Rule.batch.path {
        sent(head, by: node)
        return (head, stream)
      }
      partialBatches += 1
    case .whole(let message, let stream):
      guard message.path == Rule.batch.path else { return nil }
      partialBatches -= 1
      sentBatch(message, by: node)
      return (message, stream)
    }
    return nil
  }

  /// Notes that the backend has refused a request, which it does not run.
  func refused(_ request: HTTPMessage) {
    let caller = request.fields["authorization"] ?? ""
    let key = request.fields["idempotency-key"] ?? ""
    let isBatch = request.path == Rule.batch.path
    let attempt = Int((isBatch ? key : request.fields["idempotency-attempt"]) ?? "") ?? 0
    let keys = isBatch ? request.batch.items.map(\.key) : [key]
    for key in keys {
      let record = record("\(caller)|\(request.path)|\(key)")
      note(record, "the backend refuses attempt \(attempt)")
      record?.refusals.append(Record.Sending(attempt: attempt, at: now, node: 0))
    }
  }

  private func sent(_ head: HTTPMessage, by node: Int) {
    let (caller, key) = (head.fields["authorization"] ?? "", head.fields["idempotency-key"] ?? "")
    let name = "\(caller)|\(head.path)|\(key)"
    if let id = head.fields["idempotency-request-id"], let record = records[name], record.id != id {
      record.id = id
      names[id] = name
    }
    sent(
      name, attempt: Int(head.fields["idempotency-attempt"] ?? "") ?? 0, by: node,
      of: head.fields["x-delivery"] ?? "")
  }

  func sent(_ name: String, attempt: Int, by node: Int, of delivery: String = "") {
    guard let record = record(name) else { return }
    let sending = Record.Sending(attempt: attempt, at: now, node: node, delivery: delivery)
    note(record, "node \(node) sends attempt \(attempt)")
    if !record.isExcused { check(sending, of: record) }
    checkForgotten(sending, of: record)
    checkDeliveries(sending, of: record)
    checkGeneration(sending, of: record)
    record.sent.append(sending)
  }

  private func check(_ sending: Record.Sending, of record: Record) {
    checkLimit(sending, of: record)
    if let before = record.sent.last { check(sending, after: before, of: record) }
    if record.sent.isEmpty, sending.attempt <= record.attemptsBefore {
      violation(1, record, "attempt \(sending.attempt) was sent after \(record.attemptsBefore)")
    }
    if let operatorsRun = record.operatorsRun {
      violation(1, record, "was sent after an operator's outcome, run \(operatorsRun)")
    } else if let outcome = record.outcome, !mayBeLost(at: outcome.at) {
      violation(1, record, "was sent after its outcome, of run \(outcome.serial ?? 0)")
    }
  }

  /// Attempts grow, and the next begins only when the one before is over.
  private func check(_ after: Record.Sending, after before: Record.Sending, of record: Record) {
    let runs = record.runs(of: before, before: after.at)
    // The one before has taken over what this one had claimed, by a clock that it could not know to be set.
    if record.rule.mayRepeat, after.attempt < before.attempt, isNewToClock(after, before) {
      excused += 1
      return
    }
    if !record.isItem, after.attempt <= before.attempt, !wasDeleted(record, before: after.at) {
      violation(1, record, "attempt \(after.attempt) was sent after attempt \(before.attempt)")
    }
    if runs.contains(where: { $0.allowedAnother(before: after.at) }) { return }
    if record.isRefused(before, before: after.at) { return }
    checkTakeOver(after, after: before, of: record)
    let mayRepeat = record.rule.mayRepeat
    let gap = after.at - before.at
    if mayRepeat, gap.nanoseconds >= Rules.settle.span.nanoseconds - 10_000_000 {
      if let run = running(before, of: record) {
        violation(1, record, "attempt \(after.attempt) was sent while run \(run.serial) was under way")
      }
      return
    }
    if mayRepeat, isNewToClock(before, after) {
      excused += 1
      return
    }
    let seconds = Double(gap.nanoseconds / 1_000_000) / 1000
    violation(
      1, record, "attempt \(after.attempt) was sent \(seconds) s after one that was not over")
  }

  /// Whether the record was deleted, so that its attempts begin anew: all that was sent met rejections, and so soon that
  /// no renewal of a lease was requested meanwhile.
  private func wasDeleted(_ record: Record, before moment: Moment) -> Bool {
    record.sent.allSatisfy { sending in
      record.runs(of: sending, before: moment).contains { run in
        guard run.end == .rejected, let respondedAt = run.respondedAt else { return false }
        return hasStandstills || respondedAt < sending.at + record.rule.deletionTime.span
      }
    }
  }

  /// The run of a sending for which its node certainly waits now; `nil` if there is none, or anything may have kept the
  /// node from renewing its lease.
  func running(_ sending: Record.Sending, of record: Record) -> Run? {
    guard isUndisturbed(since: sending.at - Span(seconds: 4)) else { return nil }
    return awaited(sending, of: record)
  }

  /// The run of a sending for whose response its node waits, unless something has happened to that node.
  func awaited(_ sending: Record.Sending, of record: Record) -> Run? {
    guard !standsStill, !hasCuts, !losesReplies, !record.isRefused(sending, before: now) else { return nil }
    return record.runs(of: sending, before: now).last { run in
      guard run.respondedAt == nil, let respondsAt = run.respondsAt else { return false }
      return respondsAt < sending.at + Span(seconds: record.rule.responseTimeout.seconds - 0.7)
    }
  }

  /// Whether nothing has happened to any node or to its store since a moment.
  func isUndisturbed(since moment: Moment) -> Bool {
    isQuiet(since: moment, [nodeEnds, clockSteps, cutOffs])
  }

  /// The same but for what does not matter.
  ///
  /// - Parameter others: What else matters.
  func isQuiet(since moment: Moment, _ others: [[Moment]]) -> Bool {
    !([disturbances, storeFailures, drains] + others).contains { $0.contains { moment <= $0 } }
  }

  func ran(_ run: Run) {
    executions += 1
    serials[run.serial] = run
    guard let record = record(run.record) else { return }
    note(
      record,
      "the backend runs attempt \(run.attempt) as run \(run.serial): \(run.status), \(run.end)")
    if !run.id.isEmpty {
      let other = owners[run.id, default: run.record]
      if other != run.record { violation(4, record, "its id is that of \(other), too", mayBeLost: false) }
      owners[run.id] = run.record
    }
    guard !record.isExcused else { return record.runs.append(run) }
    if let before = record.runs.last(where: { $0.end != .rejected }), run.end != .rejected,
      before.payload != run.payload
    {
      violation(4, record, "ran with two payloads")
    }
    if !record.rule.runsAgain, let before = record.runs.last, before.end != .retry,
      before.end != .rejected
    {
      violation(
        1, record, "ran as \(run.serial) after \(before.serial) had ended as \(before.end)")
    }
    record.runs.append(run)
    if let last = record.sent.last(where: { $0.attempt == run.attempt }),
      record.isRefused(last, before: now)
    {
      violation(1, record, "attempt \(run.attempt): refused, and ran")
    }
    let runs = record.runs.count { $0.attempt == run.attempt }
    let sendings = record.sent.count { $0.attempt == run.attempt }
    if runs > sendings {
      violation(1, record, "attempt \(run.attempt): sent \(sendings), ran \(runs) times")
    }
  }

  func responded(_ run: Run) {
    run.respondedAt = now
    note(record(run.record), "the backend responds to run \(run.serial)")
  }
}
