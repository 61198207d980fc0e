import Idempotency
import Wire

extension Problem {
  /// What a client is told whose bytes are no request.
  init(_ error: WireError) {
    switch error.status {
    case 431, 414: self = .headerTooLarge
    case 501: self = .notImplemented
    default: self = .badRequest(.malformed)
    }
  }

  /// A passed-through request whose answer was lost. Nothing was recorded, and the backend may have run it.
  static func passageLost(_ loss: AnswerLoss) -> Problem {
    .answerLost(loss, retryAfter: nil)
  }
}
