import Idempotency

extension RouteDraft {
  /// Reads `retries`: `off`, or a mapping of members. Requires the outcome classes.
  mutating func readRetries(_ section: Section) {
    guard let member = section.member("retries") else { return }
    guard member.isMapping else {
      let isOff = member.parsed("off, or members such as {max: 2}") { text throws(Refusal) in
        guard text == "off" else { throw Refusal("must be off, or members such as {max: 2}") }
        return true
      }
      if isOff == true { policy.retries = nil }
      return
    }
    var retries = policy.retries ?? RetryPolicy()
    member.section { retries.read($0, outcomes: policy.outcomes) }
    policy.retries = retries
  }
}

extension RetryPolicy {
  fileprivate mutating func read(_ section: Section, outcomes: OutcomeTable) {
    section.integer("max", into: &max, in: 1...20)
    section.duration("backoff", into: &backoff, atLeast: 1)
    section.duration("max_backoff", into: &maxBackoff, atLeast: 1)
    if let percent = section.member("budget")?.parsed("a percentage such as 20%", Self.percentage) {
      budget = percent
    }
    readStatuses(section, outcomes: outcomes)
    if section.isSound("backoff", "max_backoff"), maxBackoff < backoff {
      let (first, longest) = (TimeSpan.text(backoff), TimeSpan.text(maxBackoff))
      if let member = section["max_backoff"] {
        member.refuse("must not be shorter than backoff: \(longest) against \(first)")
      } else {
        section["backoff"]?.refuse(
          "must not be longer than max_backoff, which is \(longest) by default: \(first)")
      }
    }
  }

  private static func percentage(_ text: String) throws(Refusal) -> Int {
    let (count, unit) = Quantity.split(text)
    guard unit == "%", 0...100 ~= count else { throw Refusal("must be from 0% to 100%") }
    return Int(count)
  }

  /// Reads the statuses. Each must be of class `retry`: a response that may have been executed is never repeated.
  private mutating func readStatuses(_ section: Section, outcomes: OutcomeTable) {
    let wanted = "a list such as [408, 425, 429, 503]"
    let read = section.member("on")?.list(wanted, of: "a status such as 503") { text throws(Refusal) in
      guard text.utf8.count == 3, let status = Int(text), 200...599 ~= status else {
        throw Refusal("must be a status from 200 to 599")
      }
      guard outcomes[status] == .retry else {
        throw Refusal(
          "is of class \(outcomes[status].rawValue) on this route, and never repeated; list it under "
            + "outcomes.retry, or take it out")
      }
      return status
    }
    if let read { on = read }
  }
}
