import Idempotency
import NIOCore
import Telemetry
import Wire

/// The value of `Idempotency-Status`, Semel's statement on a response.
enum ResponseLabel {
  /// The response is recorded without its body, so that a retry does not get it.
  case executedUnkept
  case executed, replayed, ignored, unknown, unprotected, notStored
  /// The request was forwarded whatever its record is, since its route is shadowed.
  case shadow(would: ShadowVerdict)

  /// The label of a backend's response of this class.
  ///
  /// - Parameter isKept: Whether the record has its body, as far as that is known.
  init(_ outcome: OutcomeClass, isKept: Bool = true) {
    switch outcome {
    case .final: self = isKept ? .executed : .executedUnkept
    case .retry: self = .notStored
    case .unknown: self = .unknown
    }
  }

  /// Writes the whole line.
  func write(into out: inout ByteBuffer) {
    switch self {
    case .executed: out.writeLiteral("Idempotency-Status: executed\r\n")
    case .executedUnkept: out.writeLiteral("Idempotency-Status: executed; kept=no\r\n")
    case .replayed: out.writeLiteral("Idempotency-Status: replayed\r\nIdempotent-Replayed: true\r\n")
    case .ignored: out.writeLiteral("Idempotency-Status: ignored\r\n")
    case .unknown: out.writeLiteral("Idempotency-Status: unknown\r\n")
    case .unprotected: out.writeLiteral("Idempotency-Status: unprotected\r\n")
    case .notStored: out.writeLiteral("Idempotency-Status: not-stored\r\n")
    case .shadow(let would): out.writeString("Idempotency-Status: shadow; would=\(would.text)\r\n")
    }
  }
}
