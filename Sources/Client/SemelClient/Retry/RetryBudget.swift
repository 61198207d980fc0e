import Synchronization

/// The law that bounds the retries to one host: while all is well they cost nothing, and in an outage they end. Intents
/// of a queue are then sent again at long intervals, up to 32 s and more.
public enum RetryLaw: Hashable, Sendable {
  /// A bucket of tokens. A retry costs `transient`, or `throttled` where the server has too much to do; a success
  /// returns `success`. The default is AWS' of 2026.
  case bucket(capacity: Int = 500, transient: Int = 14, throttled: Int = 5, success: Int = 1)
  /// gRPC's throttle (gRFC A6): a failure costs one token, a success returns `ratio`, and there are retries while more
  /// than half of the tokens are left.
  case ratio(maxTokens: Int = 10, ratio: Double = 0.1)
  /// No bound.
  case unlimited
}

/// The retry budget of one host. Decides, and waits for nothing.
package struct RetryBudget: Hashable, Sendable {
  package let law: RetryLaw
  package private(set) var tokens: Double

  package init(_ law: RetryLaw) {
    self.law = law
    tokens =
      switch law {
      case .bucket(let capacity, _, _, _): Double(capacity)
      case .ratio(let maxTokens, _): Double(maxTokens)
      case .unlimited: 0
      }
  }

  /// Charges a failure, and returns whether a retry may follow.
  package mutating func failed(isThrottled: Bool) -> Bool {
    switch law {
    case .bucket(_, let transient, let throttled, _):
      let cost = Double(isThrottled ? throttled : transient)
      guard tokens >= cost else { return false }
      tokens -= cost
      return true
    case .ratio(let maxTokens, _):
      tokens = max(0, tokens - 1)
      return tokens > Double(maxTokens) / 2
    case .unlimited: return true
    }
  }

  package mutating func succeeded() {
    switch law {
    case .bucket(let capacity, _, _, let success): tokens = min(Double(capacity), tokens + Double(success))
    case .ratio(let maxTokens, let ratio): tokens = min(Double(maxTokens), tokens + ratio)
    case .unlimited: break
    }
  }
}

/// The retry budgets of all hosts, which several clients of a process may share.
public final class RetryBudgets: Sendable {
  private let law: RetryLaw
  private let budgets = Mutex<[String: RetryBudget]>([:])

  /// Budgets that are full, one for each host.
  public init(_ law: RetryLaw = .bucket()) {
    self.law = law
  }

  package func failed(at host: String, isThrottled: Bool) -> Bool {
    budgets.withLock { $0[host, default: RetryBudget(law)].failed(isThrottled: isThrottled) }
  }

  package func succeeded(at host: String) {
    budgets.withLock { $0[host]?.succeeded() }
  }

  /// The tokens that are left to a host.
  public func tokens(of host: String) -> Double {
    budgets.withLock { $0[host, default: RetryBudget(law)].tokens }
  }
}
