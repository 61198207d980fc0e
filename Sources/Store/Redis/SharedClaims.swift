import Idempotency

/// A claim on its way, and the receiver of its reply.
struct ClaimCall: Sendable {
  let request: ClaimRequest
  /// The number by which later claims share its command; `nil` if none may.
  let leaderNumber: Int?
  let onReply: @Sendable (ClaimReply) -> Void

  /// The same claim with a request in another form.
  func with(_ request: ClaimRequest) -> ClaimCall {
    ClaimCall(request: request, leaderNumber: leaderNumber, onReply: onReply)
  }

  /// A claim that shares no command.
  static func alone(
    _ request: ClaimRequest, _ onReply: @escaping @Sendable (ClaimReply) -> Void
  ) -> ClaimCall {
    ClaimCall(request: request, leaderNumber: nil, onReply: onReply)
  }
}

/// The claims of one event loop that share the command of an earlier one. Confined to its loop.
///
/// Clients that repeat a request at once, or many at a time, are given one recorded outcome. Redis is asked for it once
/// for all deliveries of one key and payload that arrive before the first one's command has left: that command is
/// executed after each of them has arrived, so that none is given an outcome that was forgotten before. Only an outcome
/// is shared. Whatever else the first one is told, each of the others then sends a command of its own.
final class SharedClaims {
  /// The claims whose commands have not left yet, the first of each record. Batches make thousands of them at once.
  private var unwritten: [RecordID: (fingerprint: Fingerprint, number: Int)] = [:]
  /// The claims that share a command, by the number of the one that sends it.
  private var followers: [Int: [ClaimCall]] = [:]
  private var lastNumber = 0

  /// Takes a claim that shares the command of an earlier one. False if there is none.
  func join(_ request: ClaimRequest, _ onReply: @escaping @Sendable (ClaimReply) -> Void) -> Bool {
    guard let leader = unwritten[request.id], leader.fingerprint == request.fingerprint else { return false }
    followers[leader.number, default: []].append(.alone(request, onReply))
    return true
  }

  /// Returns a claim that sends a command, which others may share.
  func leader(_ request: ClaimRequest, _ onReply: @escaping @Sendable (ClaimReply) -> Void) -> ClaimCall {
    lastNumber += 1
    return ClaimCall(request: request, leaderNumber: lastNumber, onReply: onReply)
  }

  /// Takes a claim whose command leaves with the next write. Others may share it until then.
  func appended(_ call: ClaimCall) {
    guard let number = call.leaderNumber, unwritten[call.request.id] == nil else { return }
    unwritten[call.request.id] = (call.request.fingerprint, number)
  }

  /// Handles the writing of all commands that were appended so far.
  func wrote() {
    unwritten.removeAll(keepingCapacity: true)
  }

  /// Takes the end of a claim, and returns the claims that have shared its command.
  func ended(_ call: ClaimCall) -> [ClaimCall] {
    guard let number = call.leaderNumber else { return [] }
    // A command that a lost connection has left unwritten.
    if !unwritten.isEmpty, unwritten[call.request.id]?.number == number { unwritten[call.request.id] = nil }
    guard !followers.isEmpty else { return [] }
    return followers.removeValue(forKey: number) ?? []
  }
}

extension ClaimReply {
  /// The same reply for a claim that has shared the command; `nil` if that needs a command of its own.
  ///
  /// It has claimed nothing, whatever became of the command.
  var forFollower: ClaimReply? {
    switch self {
    case .success(.taken(.completed)), .failure(.refused), .failure(.unreadable), .failure(.unavailable):
      self
    // The leader's client may be gone, in which case its response was not read.
    case .success, .failure(.busy): nil
    case .failure(.fateUnknown(let reason)): .failure(.unavailable(reason))
    }
  }
}
