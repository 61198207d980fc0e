import Idempotency

/// The pace of the log entries about Redis, by their texts: a text is due again after an interval. Pure.
struct WarningPace {
  /// The minimum time between two equal entries, which would otherwise come from every loop's connection at each
  /// reconnection.
  static let interval = Milliseconds.seconds(60)

  /// The time of the last entry with each text. A text that is due is removed with the next entry.
  private var loggedAt: [String: BootInstant] = [:]
  /// The reasons that stand until their end is reported.
  private var standing: Set<String> = []

  /// The number of texts that are kept.
  var count: Int { loggedAt.count }

  /// Returns whether an entry is due, and then notes it as logged.
  ///
  /// - Parameter text: The entry's text. It contains nothing that changes from one inspection to the next.
  mutating func isDue(_ text: String, at now: BootInstant) -> Bool {
    if let last = loggedAt[text], now - last < Self.interval { return false }
    loggedAt = loggedAt.filter { now - $0.value < Self.interval }
    loggedAt[text] = now
    return true
  }

  /// Notes a reason that stands until `ends`. Returns whether its entry is due, as for any other.
  mutating func begins(_ reason: String, at now: BootInstant) -> Bool {
    standing.insert(reason)
    return isDue(reason, at: now)
  }

  /// Notes the end of a reason, whose next beginning is due at once. Returns whether it stood until now.
  mutating func ends(_ reason: String) -> Bool {
    loggedAt[reason] = nil
    return standing.remove(reason) != nil
  }
}
