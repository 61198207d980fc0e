import Idempotency

/// A claim on its way, and the receiver of its reply.
struct ClaimCall: Sendable {
  let request: ClaimRequest
  /// The number by which later claims share its command; `nil` if none may.
  let leaderNumber: Int?
  let onReply: @Sendable (ClaimReply) -> Void

  func with(_ request: ClaimRequest) -> ClaimCall {
    ClaimCall(request: request, leaderNumber: leaderNumber, onReply: onReply)
  }

  static func alone(
    _ request: ClaimRequest, _ onReply: @escaping @Sendable (ClaimReply) -> Void
  ) -> ClaimCall {
    ClaimCall(request: request, leaderNumber: nil, onReply: onReply)
  }
}

/// The claims of one event loop that share the command of an earlier one. Confined to its loop.
///
/// Redis is asked once for all deliveries of one key and payload that arrive before the first one's command has left.
/// Only an outcome is shared, none that was forgotten before: on any other reply each sends a command of its own.
final class SharedClaims {
  /// The claims whose commands have not left yet, the first of each record.
  private var unwritten: [RecordID: (fingerprint: Fingerprint, number: Int)] = [:]
  private var followers: [Int: [ClaimCall]] = [:]
  private var lastNumber = 0

  func join(_ request: ClaimRequest, _ onReply: @escaping @Sendable (ClaimReply) -> Void) -> Bool {
    guard let leader = unwritten[request.id], leader.fingerprint == request.fingerprint else { return false }
    followers[leader.number, default: []].append(.alone(request, onReply))
    return true
  }

  func leader(_ request: ClaimRequest, _ onReply: @escaping @Sendable (ClaimReply) -> Void) -> ClaimCall {
    lastNumber += 1
    return ClaimCall(request: request, leaderNumber: lastNumber, onReply: onReply)
  }

  func appended(_ call: ClaimCall) {
    guard let number = call.leaderNumber, unwritten[call.request.id] == nil else { return }
    unwritten[call.request.id] = (call.request.fingerprint, number)
  }

  func wrote() {
    unwritten.removeAll(keepingCapacity: true)
  }

  func ended(_ call: ClaimCall) -> [ClaimCall] {
    guard let number = call.leaderNumber else { return [] }
    // A command that a lost connection has left unwritten.
    if !unwritten.isEmpty, unwritten[call.request.id]?.number == number { unwritten[call.request.id] = nil }
    guard !followers.isEmpty else { return [] }
    return followers.removeValue(forKey: number) ?? []
  }
}

extension ClaimReply {
  /// The same reply for a claim that has shared the command and claimed nothing; `nil` if it needs one of its own.
  var forFollower: ClaimReply? {
    switch self {
    case .success(.taken(.completed)), .failure(.refused), .failure(.unreadable), .failure(.unavailable):
      self
    // The leader's client may be gone.
    case .success, .failure(.busy): nil
    case .failure(.fateUnknown(let reason)): .failure(.unavailable(reason))
    }
  }
}
