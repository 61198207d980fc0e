import Idempotency
import Wire

extension Problem {
  /// The problem of a client whose bytes are not a request.
  public static func unreadable(_ error: WireError) -> Problem {
    switch error.status {
    case 431, 414: .headerTooLarge
    case 501: .notImplemented
    default: .badRequest(.malformed)
    }
  }

  /// A passed-through request whose response was lost. Nothing was recorded, and the backend may have run it.
  static func passageLost(_ loss: ResponseLoss) -> Problem {
    .responseLost(loss, retryAfter: nil)
  }
}
