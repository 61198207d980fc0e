import Foundation

/// The work of one process among faults, and the faults that it brings upon itself.
struct Plan: Decodable {
  /// The database, which another process may share.
  var file: String
  var origin: String
  /// The server of tokens, and this process' account there.
  var tokens: String
  var account: String
  /// The caller to Semel, which stays when tokens change.
  var device: String
  /// The numbers of the orders: from `first` on, `count` of them.
  var first: Int
  var count: Int
  var groups: Int
  /// The chance of the process' death at each boundary.
  var deathRate: Double
  /// A file with the seconds by which the wall clock is wrong.
  var clockFile: String
  /// Whether the disk is full now and then.
  var fillsDisk: Bool
  /// The planted bug, if there is one.
  var bug: Bug?

  /// The mistakes that clients make, which the checker has to find.
  enum Bug: String, Decodable {
    case newKeyPerTry = "new_key_per_try"
    case deleteBeforeCommit = "delete_before_commit"
    case enqueueOutsideTransaction = "enqueue_outside_transaction"
    case refreshByEachCall = "refresh_by_each_call"
    case orderByTime = "order_by_time"
    case guardInMemory = "guard_in_memory"
  }

  /// The places at which a process may die.
  enum Boundary: CaseIterable { case enqueued, sending, received, committing, ended }

  /// Ends the process as a crash does, by chance.
  func mayDie(at boundary: Boundary) {
    if Double.random(in: 0..<1) < deathRate { kill(getpid(), SIGKILL) }
  }

  func now() -> Date {
    let text = (try? String(contentsOfFile: clockFile, encoding: .utf8)) ?? "0"
    return Date().addingTimeInterval(Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0)
  }
}
