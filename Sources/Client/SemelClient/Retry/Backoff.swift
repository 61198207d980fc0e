/// The pauses between retries: exponential, capped, with full jitter.
///
/// The pause before retry *n*, counted from 0, is a random time between zero and `first · 2ⁿ`, at most `max`. Clients
/// that failed together so return spread over the whole time, and not together again.
public struct Backoff: Hashable, Sendable {
  /// The upper bound of the first pause.
  public var first: Duration
  /// The upper bound of the first pause where the server has too much to do.
  public var firstWhenThrottled: Duration
  /// The upper bound of every pause.
  public var max: Duration

  /// Pauses between bounds. Those for the first pause are AWS' of 2026.
  public init(first: Duration = .milliseconds(50), firstWhenThrottled: Duration = .seconds(1), max: Duration)
  {
    self.first = first
    self.firstWhenThrottled = firstWhenThrottled
    self.max = max
  }

  /// The upper bound of a pause.
  package func bound(retry: Int, isThrottled: Bool) -> Duration {
    let first = isThrottled ? firstWhenThrottled : first
    // 2⁴⁰ milliseconds are 35 years, so that a larger exponent changes nothing and cannot overflow.
    return Swift.min(max, first * (1 << Swift.max(0, Swift.min(retry, 40))))
  }

  /// The pause, by 64 random bits.
  package func pause(retry: Int, isThrottled: Bool, random: UInt64) -> Duration {
    let bound = bound(retry: retry, isThrottled: isThrottled).milliseconds
    return .milliseconds(Int64(random % UInt64(bound + 1)))
  }
}

extension Duration {
  /// The duration, or some 136 years: the runtime's sleep ends the process at the largest durations.
  package var asPause: Duration { min(self, .seconds(1 << 32)) }

  /// The whole milliseconds of a duration; the largest number where there are more, and zero for a negative one.
  package var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflows) = seconds.multipliedReportingOverflow(by: 1000)
    return overflows
      ? (seconds > 0 ? .max - 1 : 0) : Swift.max(0, product + attoseconds / 1_000_000_000_000_000)
  }

  /// The duration in seconds.
  package var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
