import Idempotency

/// The value of `Idempotency-Status`, Semel's statement on a response.
enum ResponseLabel: String {
  case executed, replayed, ignored, unknown, unprotected
  case notStored = "not-stored"

  /// The label of a backend's response of this class.
  init(_ outcome: OutcomeClass) {
    switch outcome {
    case .final: self = .executed
    case .retry: self = .notStored
    case .unknown: self = .unknown
    }
  }

  /// The whole line.
  var line: StaticString {
    switch self {
    case .executed: "Idempotency-Status: executed\r\n"
    case .replayed: "Idempotency-Status: replayed\r\nIdempotent-Replayed: true\r\n"
    case .ignored: "Idempotency-Status: ignored\r\n"
    case .unknown: "Idempotency-Status: unknown\r\n"
    case .unprotected: "Idempotency-Status: unprotected\r\n"
    case .notStored: "Idempotency-Status: not-stored\r\n"
    }
  }
}
