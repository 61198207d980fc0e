import Idempotency
import NIOCore
import Wire

/// The fields by which a route states more in the responses to keyed requests: their key, and what the clients of a
/// profile look for.
///
/// A class, so that a request of another route holds an empty reference.
final class RouteFields: Sendable {
  /// The backend's own fields of these names, which do not reach the client.
  let omission: FieldOmission
  private let profile: RouteProfile?
  /// The line that repeats the key; `nil` if the route does not, or the key is not known.
  private let echo: ByteBuffer?

  init(_ route: Route, echo: ByteBuffer? = nil) {
    omission = route.statedByRoute
    profile = route.policy.profile
    self.echo = echo
  }

  /// Those of a refusal to a client of the profile `repeatability` where no route has it.
  init(rejecting: Void) {
    omission = FieldOmission(FieldNameList())
    profile = .repeatability
    echo = nil
  }

  /// Writes them for a response.
  func write(for source: ClientResponseHead.Source, into out: inout ByteBuffer) {
    if case .own = source { return }
    if let echo { out.writeImmutableBuffer(echo) }
    switch source {
    case .backend(_, let label): writeFirst(label, into: &out)
    case .recorded: writeResult(isAccepted: true, into: &out)
    case .problem(let problem, _, _): writeResult(isAccepted: problem.isOfAcceptedRequest, into: &out)
    case .own: break
    }
  }

  private func writeFirst(_ label: ResponseLabel?, into out: inout ByteBuffer) {
    switch label {
    case .executed, .executedUnkept, .notStored, .unprotected: writeResult(isAccepted: true, into: &out)
    case .unknown: break
    case .replayed, .ignored, .shadow, nil: return
    }
    if profile?.marksFirstResponses == true { out.writeLiteral("Idempotent-Replayed: false\r\n") }
  }

  private func writeResult(isAccepted: Bool?, into out: inout ByteBuffer) {
    guard profile == .repeatability, let isAccepted else { return }
    out.writeString("Repeatability-Result: \(isAccepted ? "accepted" : "rejected")\r\n")
  }
}

extension Problem {
  /// Whether the request behind a refusal has run, or runs, once (OASIS Repeatable Requests 1.0); `nil` if nobody knows: an
  /// earlier delivery may have run, and the record was not read or says no more.
  fileprivate var isOfAcceptedRequest: Bool? {
    switch code {
    case .inFlight, .responseNotKept: true
    case .badRequest, .keyMissing, .keyInvalid, .keyNotSupported, .payloadMismatch, .requestTooLarge,
      .headerTooLarge, .notImplemented, .noRoute, .keyExpired:
      false
    case .callerUnknown, .requestTimeout, .outcomeUnknown, .storeUnavailable, .storeUnreadable,
      .upstreamUnreachable, .overloaded, .quotaExceeded:
      nil
    }
  }
}
