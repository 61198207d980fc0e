import Foundation
import GRDB
import Logging
public import SemelClient
import Synchronization

/// The sending of what is queued.
extension Outbox {
  /// Sends what is queued until the task is cancelled. Then deliveries that are under way are cut off, and the next run
  /// repeats them under the same keys.
  ///
  /// This is the shape of a `Service` (swift-service-lifecycle): `extension Outbox: @retroactive Service {}`. One queue
  /// object is run once at a time; another process may run its own on the same file.
  public func run() async throws {
    await withDiscardingTaskGroup { group in
      while !Task.isCancelled {
        let free = settings.maxParallel - running.withLock { $0 }
        let due = await lease(atMost: free)
        for leased in due ?? [] {
          running.withLock { $0 += 1 }
          group.addTask { [self] in
            await carry(leased)
            running.withLock { $0 -= 1 }
            doorbell.ring()
          }
        }
        // More may be due where all places are taken, and the next that is free rings. After an error nothing is
        // known, and trying at once would fail as well.
        let isDry = due.map { $0.count < free } ?? false
        await doorbell.wait(
          atMost: isDry ? await untilDue() : settings.pollInterval, on: courier.environment.clock)
      }
    }
  }

  /// Sends what is due now, once each, and returns how many deliveries that were. For tests, and for the few seconds
  /// that a system leaves to an app in the background.
  @discardableResult
  public func runDue() async -> Int {
    let due = await lease(atMost: settings.maxParallel) ?? []
    await withDiscardingTaskGroup { group in
      for leased in due { group.addTask { [self] in await carry(leased) } }
    }
    return due.count
  }

  /// The intents to send now; `nil` after an error of the database.
  private func lease(atMost limit: Int) async -> [LeasedIntent]? {
    guard limit > 0 else { return [] }
    do {
      let turn = try await write { [store] db in try store.lease(limit: limit, in: db) }
      turn.failures.forEach(failed)
      return turn.leased
    } catch {
      failed(error)
      return nil
    }
  }

  /// The time until the next intent is due, at most the interval after which the queue is read anyway.
  private func untilDue() async -> Duration {
    let due = try? await read { [store] db in try store.untilDue(in: db) }
    return min(due.flatMap { $0 } ?? settings.pollInterval, settings.pollInterval)
  }

  /// Sends one intent once, and writes what came of it, while its lease is renewed.
  private func carry(_ leased: LeasedIntent) async {
    hub.send(.sending(leased.name))
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in await keepLease(leased) }
      group.addTask { [self] in await settle(await attempt(leased)) }
      // Whichever ends first ends the other: a lease that is lost ends its delivery.
      await group.next()
      group.cancelAll()
    }
  }

  private func keepLease(_ leased: LeasedIntent) async {
    while true {
      guard (try? await courier.environment.clock.sleep(for: settings.leaseDuration / 3)) != nil else {
        return
      }
      // An error of the database is no loss: the lease is another process' only once that has taken it.
      if (try? await write { [store] db in try store.renew(leased, in: db) }) == false { return }
    }
  }

  /// The result of a delivery, or of a question in its place.
  private enum Attempt {
    case end(LeasedIntent, QueuedOutcome)
    case postpone(LeasedIntent, Duration)
  }

  private func attempt(_ leased: LeasedIntent) async -> Attempt {
    var leased = leased
    if let known = await reconcile(&leased) { return known }
    do {
      return judge(try await courier.deliver(leased.intent), of: leased)
    } catch {
      switch error {
      case .credentials: return judge(Verdict(.credentials), of: leased)
      case .body(let reason, let isGone):
        logger.error("a body cannot be read", metadata: ["key": "\(leased.name.key)", "reason": "\(reason)"])
        guard isGone else { return judge(Verdict(.notSent), of: leased) }
        return .end(
          leased, leased.lifecycle.progress.mayHaveRun ? .unknown(nil) : .cancelled(.bodyUnreadable))
      }
    }
  }

  private func judge(_ verdict: Verdict, of leased: LeasedIntent) -> Attempt {
    var leased = leased
    metrics.delivered(verdict)
    let host = courier.origin.authority
    if [.success, .permanent].contains(verdict.deliveryClass) { budgets.succeeded(at: host) }
    let action = leased.lifecycle.delivered(
      verdict, start: leased.start, now: courier.environment.now(), random: courier.environment.random()
    ) { budgets.failed(at: host, isThrottled: verdict.isThrottled) }
    switch action {
    case .end(let end): return .end(leased, QueuedOutcome(end))
    case .wait(let pause): return .postpone(leased, pause)
    }
  }

  /// Asks the server for the outcome of an intent that may have been carried out some time ago. A server that does not
  /// answer such questions is sent the intent again.
  private func reconcile(_ leased: inout LeasedIntent) async -> Attempt? {
    guard let age = leased.sinceLastDelivery, age >= settings.reconcileAfter else { return nil }
    guard let state = try? await courier.inquire(about: leased.intent) else { return nil }
    switch state {
    case .completed(_, let response?):
      var verdict = Classifier().verdict(
        on: response, to: leased.intent.request.path, now: courier.environment.now())
      verdict.wasReplayed = true
      return judge(verdict, of: leased)
    case .inFlight:
      return judge(Verdict(.inFlight), of: leased)
    case .released:
      leased.lifecycle.provedUnexecuted()
      return nil
    case .absent, .unknown, .expired, .completed(_, nil): return nil
    }
  }

  /// Writes the end of an attempt, for as long as that takes: an outcome that is not written would be asked for again.
  private func settle(_ attempt: Attempt) async {
    var failures = 0
    while true {
      do {
        return try await record(attempt)
      } catch {
        failed(error)
        failures += 1
        let pause = courier.policy.queue.backoff.pause(
          retry: failures, isThrottled: true, random: courier.environment.random())
        guard (try? await courier.environment.clock.sleep(for: min(pause, .seconds(20)))) != nil else {
          return
        }
      }
    }
  }

  private func record(_ attempt: Attempt) async throws(OutboxError) {
    switch attempt {
    case .postpone(let leased, let pause):
      try await write { [store] db in try store.postpone(leased, by: pause, in: db) }
      hub.send(.postponed(leased.name, pause))
    case .end(let leased, let outcome):
      let hasEnded = try await write { [store] db in try store.end(leased, outcome, in: db) }
      guard hasEnded, case .completed = outcome else { return }
      metrics.succeeded(
        after: .seconds(courier.environment.now().timeIntervalSince(leased.lifecycle.progress.createdAt)))
    }
  }

  private func failed(_ error: OutboxError) {
    logger.error("the queue's database fails", metadata: ["error": "\(error)"])
    hub.send(.storageFailed(error))
  }
}

extension QueuedOutcome {
  /// The metrics' name of an end without an outcome of its own.
  var dropReason: String? {
    switch self {
    case .completed: nil
    case .rejected: "rejected"
    case .unknown: "unknown"
    case .expired: "expired"
    case .cancelled: "cancelled"
    }
  }
}

/// The ways out of the queue other than through a delivery.
extension Outbox {
  /// The result of a cancellation.
  public enum CancelOutcome: Hashable, Sendable {
    case cancelled
    /// The intent was sent and may have been carried out, or has ended.
    case tooLate
  }

  /// Takes an intent out of the queue, if nothing of it was carried out.
  ///
  /// That is certain if it was never sent, or if each delivery is known to have come to nothing. Else the server is
  /// asked, and only its word that nothing was carried out (`released`) makes the cancellation possible.
  public func cancel(_ intent: QueuedIntent) async throws(OutboxError) -> CancelOutcome {
    switch try await write({ [store] db in try store.cancel(intent.id, in: db) }) {
    case .tooLate: return .tooLate
    case .cancelled:
      doorbell.ring()
      return .cancelled
    case .inquire(let leased, let rest): return try await cancelByInquiry(leased, rest: rest)
    }
  }

  private func cancelByInquiry(
    _ leased: LeasedIntent, rest: Duration
  ) async throws(OutboxError) -> CancelOutcome {
    let state = try? await courier.inquire(about: leased.intent)
    guard state == .released else {
      try await write { [store] db in try store.postpone(leased, by: rest, in: db) }
      doorbell.ring()
      return .tooLate
    }
    let hasEnded = try await write { [store] db in try store.end(leased, .cancelled(.requested), in: db) }
    doorbell.ring()
    return hasEnded ? .cancelled : .tooLate
  }

  /// Completes an intent, without sending it, whose object has come from the server by another way, such as a list or a
  /// push: servers echo the request's id with the objects that they create. Returns whether there was such an intent.
  @discardableResult
  public func received(objectOf key: IntentKey, _ response: Response) async throws(OutboxError) -> Bool {
    let hasEnded = try await write { [store] db in try store.received(key, response, in: db) }
    doorbell.ring()
    return hasEnded
  }
}
