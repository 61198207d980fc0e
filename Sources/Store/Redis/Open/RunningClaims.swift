import Idempotency
import Platform

struct OpenEntry: Equatable {
  let id: RecordID
  /// The end of its lease, or the loss of its outcome; `nil` if it cannot be read.
  let lapse: StoreInstant?
  let keyDigest: String?

  static let unreadableScore: Int64 = -1

  var score: Int64 { lapse.map { max(0, $0.milliseconds) } ?? Self.unreadableScore }

  var keyScore: UInt32? { keyDigest.flatMap { UInt32($0, radix: 16) } }
}

/// The claims of one event loop that run, until the index of open records has them. Pure. A claim that ends within a
/// turn or two never gets there.
struct RunningClaims {
  private struct Run {
    let id: RecordID
    let keyDigest: String?
    let lease: Milliseconds
    let began: BootInstant
    /// Whether the index may have the record already.
    let mayBeEntered: Bool
  }

  /// The claims since the last turn, and those of the turn before.
  private var latest: [OwnerToken: Run] = [:]
  private var earlier: [OwnerToken: Run] = [:]

  var isEmpty: Bool { latest.isEmpty && earlier.isEmpty }

  mutating func began(_ claim: Claim) {
    latest[claim.owner] = Run(
      id: claim.id, keyDigest: claim.attribution?.keyDigest, lease: claim.lease, began: claim.requestedAt,
      mayBeEntered: claim.followsUnknown)
  }

  /// Takes a claim whose reply is lost.
  mutating func mayHaveBegun(_ request: ClaimRequest, at now: BootInstant) {
    latest[request.owner] = Run(
      id: request.id, keyDigest: request.attribution?.keyDigest, lease: request.lease, began: now,
      mayBeEntered: true)
  }

  func has(_ owner: OwnerToken) -> Bool { latest[owner] != nil || earlier[owner] != nil }

  /// Returns whether the index may have the record of a claim that has ended.
  mutating func ended(_ owner: OwnerToken) -> Bool {
    guard let run = latest.removeValue(forKey: owner) ?? earlier.removeValue(forKey: owner) else {
      return true
    }
    return run.mayBeEntered
  }

  /// Begins the next turn, and returns the claims that have run for a whole one, which are the index's from now on.
  mutating func turn(at now: BootInstant, _ storeTime: StoreInstant) -> [OpenEntry] {
    let due = earlier.values.map { run in
      OpenEntry(id: run.id, lapse: storeTime + run.lease - (now - run.began), keyDigest: run.keyDigest)
    }
    earlier = latest
    latest = [:]
    return due
  }
}
