import Idempotency

extension RouteDraft {
  mutating func readRetries(_ member: Value) {
    guard member.isMapping else {
      let isOff = member.choice("off, or members such as {max: 2}") { $0 == "off" ? true : nil }
      if isOff == true { policy.retries = nil }
      return
    }
    var retries = policy.retries ?? RetryPolicy()
    member.section { RetryPolicy.schema.read($0, into: &retries) }
    policy.retries = retries
    for item in member["on"]?.elements ?? [] where !item.hasFault {
      item.checkIsRepeated(on: policy.outcomes)
    }
  }
}

extension Value {
  /// Refuses a status that is not of class `retry`: a response that may have been executed is never repeated.
  fileprivate func checkIsRepeated(on outcomes: OutcomeTable) {
    guard let status = text("a status").flatMap(Int.init), !outcomes.mayBeRetried(status) else { return }
    let remedy =
      outcomes.rules == nil
      ? "list it under outcomes.retry" : "write a rule for it in outcomes with is: retry"
    refuse(
      "is of class \(outcomes[status].rawValue) on this route, and never repeated; \(remedy), or take it out"
    )
  }
}

extension RetryPolicy {
  static let schema = Schema(RetryPolicy(), check: { $0.check($1) }) {
    Member("max", \.max, .integer(1...20), "retries of a request")
    Member("backoff", \.backoff, .duration(atLeast: 1), "the bound of the first pause; it doubles")
    Member("max_backoff", \.maxBackoff, .duration(atLeast: 1), "the bound of every pause")
    Member("budget", \.budget, .percentage, "retries in proportion to requests")
    Member("on", \.on, .statuses("a list such as [408, 425, 429, 503]"), "the statuses that are repeated")
  }

  private func check(_ section: Section) {
    guard section.isSound("backoff", "max_backoff"), maxBackoff < backoff else { return }
    let (first, longest) = (backoff.text, maxBackoff.text)
    if let member = section["max_backoff"] {
      member.refuse("must not be shorter than backoff: \(longest) against \(first)")
    } else {
      section["backoff"]?.refuse(
        "must not be longer than max_backoff, which is \(longest) by default: \(first)")
    }
  }
}

extension Notation<Int> {
  fileprivate static let percentage = Notation.text(
    "a percentage such as 20%", values: "0% to 100%", show: { .text("\($0)%") }
  ) { text throws(Refusal) in
    let (count, unit) = Quantity.split(text)
    guard unit == "%", 0...100 ~= count else { throw Refusal("must be from 0% to 100%") }
    return Int(count)
  }

  static let status = Notation.text("a status", show: { .number($0) }) { text throws(Refusal) in
    guard text.utf8.count == 3, let status = Int(text), 200...599 ~= status else {
      throw Refusal("must be a status from 200 to 599")
    }
    return status
  }
}

extension Notation<[Int]> {
  static func statuses(_ wanted: String) -> Notation {
    Notation(
      values: wanted,
      read: { list in list.items(wanted).map { Value.distinct($0, Notation<Int>.status.read) } },
      show: { .list($0.map(Shown.number)) })
  }
}
