import Idempotency

/// One execution of a request by the backend.
final class Run {
  /// Its meaning for another attempt.
  enum End { case final, retry, rejected, unknown, lost }

  let serial: Int
  let record: String
  let id: String
  let attempt: Int
  let payload: String
  let status: Int
  let end: End
  let at: Moment
  /// Whether its response is so large that it may take long.
  let isLarge: Bool
  /// The moment at which the backend means to respond; `nil` if it may not.
  var respondsAt: Moment?
  var respondedAt: Moment?
  /// The body of its response, or its own part of one; `nil` if that is not known.
  var content: String?

  init(
    serial: Int, record: String, id: String, attempt: Int, payload: String, status: Int, end: End,
    at: Moment, isLarge: Bool = false
  ) {
    self.serial = serial
    self.record = record
    self.id = id
    self.attempt = attempt
    self.payload = payload
    self.status = status
    self.end = end
    self.at = at
    self.isLarge = isLarge
  }

  /// Whether an operator has stated it.
  var isOperators: Bool { serial >= Self.firstOfOperators }
  static let firstOfOperators = 1_000_000

  /// Whether its response was an outcome, and was sent before a moment.
  func isFinal(before moment: Moment) -> Bool {
    guard end == .final, !isLarge, let respondedAt else { return false }
    return respondedAt < moment
  }

  /// Whether its response allowed another attempt, and was sent before a moment.
  func allowedAnother(before moment: Moment) -> Bool {
    guard end == .retry || end == .rejected, let respondedAt else { return false }
    return respondedAt < moment
  }
}

/// The judge's knowledge of one record.
final class Record {
  struct Sending {
    let attempt: Int
    let at: Moment
    let node: Int
    /// The number of the delivery; empty for a batch's item.
    var delivery = ""
  }

  /// One delivery to a node, and the moment of its response; `nil` if it has none.
  struct Visit {
    let node: Int
    let begun: Moment
    var endedAt: Moment?
  }

  let name: String
  let rule: Rule
  var id: String?
  var visits: [Visit] = []
  /// The payloads that were delivered.
  var payloads: Set<String> = []
  var sent: [Sending] = []
  var runs: [Run] = []
  /// The requests that the backend has refused, and does not run.
  var refusals: [Sending] = []
  /// When the backend has last stated that it has not run it.
  var absentAt: Moment?
  /// The owners that were granted it in Redis.
  var owners: Set<OwnerToken> = []
  /// The owner that was last granted it in Redis after it had been given back, and when.
  var grant: (owner: OwnerToken, at: Moment)?
  /// The last attempt that was in flight when an operator removed the record, and when that was done.
  var forgottenClaim: (attempt: Int, at: Moment)?
  var outcome: (response: String, serial: Int?, at: Moment)?
  /// The runs of lives that an operator has ended.
  var forgotten: Set<Int> = []
  var forgottenAt: Moment?
  /// Whether this is not its first life.
  var hasPast = false
  /// The last attempt before an operator let it run again.
  var attemptsBefore = 0
  /// The serial of the run that an operator has stated; `nil` if none.
  var operatorsRun: Int?
  /// Whether an operator has changed it while something was under way, which nothing guarantees then.
  var isExcused = false
  /// Whether a process ended while something may have been under way.
  var hasMetEnd = false
  var deliveriesUnderWay = 0
  /// The operator's commands of which nobody knows yet whether they have had their effect.
  var commandsUnderWay = 0
  /// The number of removals under way that leave its replays as they are.
  var forgetsUnderWay = 0
  /// When its first delivery began.
  var begunAt = Moment.start
  var lastEvent = Moment.start
  var last: Finding?
  var timeline: [String] = []
  /// Whether its lease is alive at the end, and the reason if the store did not say.
  var isHeld = false
  var readFault: String?

  init(_ name: String, _ rule: Rule, id: String?) {
    self.name = name
    self.rule = rule
    self.id = id
  }

  /// Notes the response to a delivery.
  func noteEnd(_ begun: Moment, at node: Int, _ now: Moment) {
    let index = visits.firstIndex { $0.node == node && $0.begun == begun && $0.endedAt == nil }
    if let index { visits[index].endedAt = now }
  }

  /// Whether it is that of a batch's item, whose attempts have the numbers of their deliveries.
  var isItem: Bool { rule == .batch }

  /// Whether the backend has refused a sending before a moment.
  func isRefused(_ sending: Sending, before end: Moment) -> Bool {
    refusals.contains {
      $0.attempt == sending.attempt && sending.at <= $0.at && $0.at < end
    }
  }

  /// The runs of a sending before a moment.
  func runs(of sending: Sending, before end: Moment) -> [Run] {
    runs.filter { $0.attempt == sending.attempt && sending.at <= $0.at && $0.at < end }
  }

  /// Whether anything of it may be under way in a node.
  func isActive(at now: Moment) -> Bool {
    deliveriesUnderWay > 0 || lastEvent > .start && now < lastEvent + Span(seconds: 15)
  }

  /// Whether nothing is under way, and nothing has been for as long as a claim may live.
  func isQuiet(at now: Moment) -> Bool {
    deliveriesUnderWay == 0 && lastEvent + Rules.longestFlight.span < now
  }
}

/// A rule of `Tests/Faults` that is broken.
struct Violation {
  let rule: Int
  let record: String
  let text: String
  let at: Moment
}
