#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The state of an intent: all that has to survive a restart.
package struct IntentProgress: Hashable, Sendable {
  package let createdAt: Date
  /// The deliveries that began.
  package var deliveries = 0
  /// The attempts that count.
  package var attempts = 0
  /// The failures since the last response that was no failure, which is the exponent of the pause.
  package var failures = 0
  /// Whether a delivery may have been carried out whose end is not known.
  package var mayHaveRun = false
  /// The begin of the first delivery that may have been carried out.
  package var firstSentAt: Date?
  /// The time at which the server forgets the key, where it said so.
  package var expires: Date?

  package init(createdAt: Date) {
    self.createdAt = createdAt
  }
}

/// One intent, from its first delivery to its end. Decides; performs no I/O, and has no clock.
package struct IntentLifecycle: Sendable {
  /// The reasons to stop although nothing was decided.
  package enum Surrender: Hashable, Sendable { case attempts, time, budget, credentials }

  package enum End: Hashable, Sendable {
    case completed(Response, wasReplayed: Bool)
    case rejected(Response)
    case unknown(Problem?)
    /// Nothing was carried out.
    case notExecuted(Surrender, Response?)
  }

  private enum State: Hashable {
    /// No delivery is under way. Followed by sending, or ended.
    case waiting
    /// A delivery is under way. Followed by waiting, or ended.
    case sending
    case ended
  }

  package private(set) var progress: IntentProgress
  private var state = State.waiting
  private let limits: Policy.Limits
  private let policy: Policy
  /// Whether a retry is postponed where a plain call gives up: for want of budget or of credentials.
  private let isPatient: Bool

  /// The machine of a plain call.
  package static func call(at now: Date, policy: Policy) -> IntentLifecycle {
    IntentLifecycle(
      progress: IntentProgress(createdAt: now), limits: policy.call, policy: policy, isPatient: false)
  }

  /// The machine of a queued intent.
  package static func queued(_ progress: IntentProgress, policy: Policy) -> IntentLifecycle {
    IntentLifecycle(progress: progress, limits: policy.queue, policy: policy, isPatient: true)
  }

  private init(progress: IntentProgress, limits: Policy.Limits, policy: Policy, isPatient: Bool) {
    self.progress = progress
    self.limits = limits
    self.policy = policy
    self.isPatient = isPatient
  }

  package enum BeginAction: Hashable { case send, end(End) }

  /// The intent's turn has come.
  package mutating func begin(now: Date) -> BeginAction {
    precondition(state == .waiting, "A delivery begins while the intent is \(state).")
    if now >= deadline { return .end(surrender(.time, nil)) }
    state = .sending
    progress.deliveries += 1
    return .send
  }

  package enum VerdictAction: Hashable { case wait(Duration), end(End) }

  /// A delivery that began at `start` has ended. `grantsRetry` charges the retry budget; it is asked only where a retry
  /// would cost one.
  package mutating func delivered(
    _ verdict: Verdict, start: Date, now: Date, random: UInt64, grantsRetry: () -> Bool
  ) -> VerdictAction {
    precondition(state == .sending, "A delivery ends while the intent is \(state).")
    state = .waiting
    if let expires = verdict.expires { progress.expires = expires }
    switch verdict.deliveryClass {
    case .success:
      return .end(ended(.completed(response(of: verdict), wasReplayed: verdict.wasReplayed)))
    case .permanent where progress.mayHaveRun && !verdict.isProven:
      return .end(ended(.unknown(verdict.problem)))
    case .permanent:
      return .end(ended(.rejected(response(of: verdict))))
    case .credentials where !isPatient:
      return .end(surrender(.credentials, verdict))
    case .temporary, .inFlight, .unknown, .notSent, .credentials:
      return failed(verdict, start: start, now: now, random: random, grantsRetry: grantsRetry)
    }
  }

  /// The server has reported, without being sent the intent, that nothing of it was carried out.
  package mutating func provedUnexecuted() {
    progress.mayHaveRun = false
    progress.firstSentAt = nil
  }

  private mutating func failed(
    _ verdict: Verdict, start: Date, now: Date, random: UInt64, grantsRetry: () -> Bool
  ) -> VerdictAction {
    if verdict.mayHaveRun || verdict.deliveryClass == .inFlight {
      progress.mayHaveRun = true
      if progress.firstSentAt == nil { progress.firstSentAt = start }
    }
    guard verdict.isRetryable else { return .end(surrender(.attempts, verdict)) }
    let isFree = verdict.retryAfter != nil || [.inFlight, .credentials].contains(verdict.deliveryClass)
    let hasBudget = isFree || grantsRetry()
    guard hasBudget || isPatient else { return .end(surrender(.budget, verdict)) }
    if !isFree && hasBudget {
      progress.attempts += 1
      if progress.attempts >= limits.maxAttempts { return .end(surrender(.attempts, verdict)) }
    }
    let wait = pause(verdict, hasBudget: hasBudget, random)
    progress.failures += 1
    if now.addingTimeInterval(wait.inSeconds) >= deadline { return .end(surrender(.time, verdict)) }
    return .wait(wait)
  }

  /// The exponent from which on a queued intent waits while its host's budget is empty: up to 32 s by default. A budget
  /// fills by successes alone, so that something has to be sent.
  private static let minRetryWithoutBudget = 5

  private func pause(_ verdict: Verdict, hasBudget: Bool, _ random: UInt64) -> Duration {
    let retry = hasBudget ? progress.failures : max(progress.failures, Self.minRetryWithoutBudget)
    let jitter = limits.backoff.pause(
      retry: retry, isThrottled: verdict.isThrottled || !hasBudget, random: random)
    return min(verdict.retryAfter ?? .zero, policy.maxRetryAfter) + jitter
  }

  /// The time from which on no delivery begins: the limit of the series, or the end of the server's memory.
  package var deadline: Date {
    let series = progress.createdAt.addingTimeInterval(limits.maxDuration.inSeconds)
    guard progress.mayHaveRun else { return series }
    let memory = progress.expires ?? progress.firstSentAt?.addingTimeInterval(policy.keyLifetime.inSeconds)
    return min(series, memory ?? series)
  }

  private mutating func surrender(_ reason: Surrender, _ verdict: Verdict?) -> End {
    progress.mayHaveRun ? ended(.unknown(verdict?.problem)) : ended(.notExecuted(reason, verdict?.response))
  }

  private mutating func ended(_ end: End) -> End {
    state = .ended
    return end
  }

  private func response(of verdict: Verdict) -> Response {
    guard let response = verdict.response else {
      preconditionFailure("A delivery of the class \(verdict.deliveryClass.rawValue) has no response.")
    }
    return response
  }
}
