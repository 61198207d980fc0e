import Idempotency
import Wire

extension Problem {
  /// What a client is told whose bytes are no request.
  static func unreadable(_ error: WireError) -> Problem {
    switch error.status {
    case 431, 414: .headerTooLarge
    case 501: .notImplemented
    default: .badRequest(.malformed)
    }
  }

  /// A passed-through request whose answer was lost. Nothing was recorded, and the backend may have run it.
  static func passageLost(_ loss: AnswerLoss) -> Problem {
    .answerLost(loss, retryAfter: nil)
  }
}
