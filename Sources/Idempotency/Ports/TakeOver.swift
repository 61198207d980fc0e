extension ClaimRequest {
  /// The condition for taking over a record of unknown outcome.
  public enum TakeOver: Sendable, Equatable {
    /// The record is never taken over: `on_unknown: hold`.
    case never
    /// The record may be taken over when this time has passed since the loss: `on_unknown: retry`.
    case afterSettle(Milliseconds)
    /// The record may be taken over when this time has passed since a loss that was seen earlier, and only after that
    /// loss: `on_unknown: reconcile`, with a verdict about it. The owner may have resumed since, sent its request and lost
    /// another response.
    case ofLoss(SeenLoss, afterSettle: Milliseconds)

    /// The time since a loss from which on a record may be taken over; `nil` for never.
    public var settle: Milliseconds? {
      switch self {
      case .never: nil
      case .afterSettle(let settle), .ofLoss(_, let settle): settle
      }
    }

    /// The minimum age of a loss whose record is taken over by a command that is sent now; `nil` for never.
    public func minAge(at now: BootInstant) -> Milliseconds? {
      guard case .ofLoss(let loss, let settle) = self else { return settle }
      return max(settle, loss.minAge(at: now))
    }
  }

  /// The loss of a response, as a look at its record has found it.
  public struct SeenLoss: Sendable, Equatable {
    /// The time since the loss, by the store's clock, at the moment of the look.
    public let age: Milliseconds
    /// The moment of the look, by this machine's clock.
    public let seenAt: BootInstant

    public init(age: Milliseconds, seenAt: BootInstant) {
      self.age = age
      self.seenAt = seenAt
    }

    /// The minimum age of the same loss at a later moment. It grows with the time, less the amount by which the clocks
    /// may drift apart. A younger loss is another one.
    public func minAge(at now: BootInstant) -> Milliseconds {
      let elapsed = now - seenAt
      return age + elapsed - Milliseconds(20 + elapsed.count / 100)
    }
  }
}
