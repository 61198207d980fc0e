import GRDB
public import SemelClient

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
    case .inquire(let leased): return try await cancelByInquiry(leased)
    }
  }

  private func cancelByInquiry(_ leased: LeasedIntent) async throws(OutboxError) -> CancelOutcome {
    let state = try? await courier.inquire(about: leased.intent)
    guard state == .released else {
      try await write { [store] db in try store.postpone(leased, by: .zero, in: db) }
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
