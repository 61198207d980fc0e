import Idempotency

/// The results of the copies of one command: they decide whether it is written again, and which error is thrown if it
/// is not. Pure.
struct CommandAttempts {
  /// The number of late replies after which a command fails. The first one corrects the estimate of the store's clock;
  /// the second may be due to a Redis that froze again.
  private static let maxLateCount = 3

  private let timeout: Milliseconds
  /// The time when the call's time-out passes.
  private(set) var deadline: BootInstant
  /// Whether no copy has a result yet.
  private(set) var areNone = true
  /// The reason for which the reply to a copy will not arrive, although it may have been executed; `nil` if there is no
  /// such copy.
  private(set) var lost: String?
  /// Whether the command carries the whole script, because Redis does not have it.
  private(set) var sendsWhole = false
  /// The redirections by a cluster's nodes; `nil` before the first one.
  private var redirects: ClusterRedirects?
  private var lateCount = 0

  /// Creates an empty set of results.
  ///
  /// - Parameters:
  ///   - timeout: The time-out of the whole call.
  ///   - deadline: The time when it passes.
  init(timeout: Milliseconds, deadline: BootInstant) {
    self.timeout = timeout
    self.deadline = deadline
  }

  /// Takes the result of a copy. True if it is the command's result; false if the command must be written again.
  @inline(never)
  mutating func ended(_ ending: ScriptReply.Ending) throws(StoreError) -> Bool {
    areNone = false
    switch ending {
    case .result(let result) where result.word == .late:
      lateCount += 1
      guard lateCount < Self.maxLateCount else { throw error("Redis ran the command after its time") }
    case .done, .result: return true
    case .refused(let text) where RedisRefusal.isScriptMissing(text) && !sendsWhole: sendsWhole = true
    case .refused(let text): throw lost.map { .fateUnknown($0) } ?? RedisRefusal.error(text)
    case .lost(let reason): lost = reason
    case .timedOut: lost = "Redis did not reply in \(timeout.count) ms"
    case .redirected(let refusal):
      var redirects = redirects ?? ClusterRedirects()
      redirects.refused(refusal)
      self.redirects = redirects
    case .unwritten: break
    }
    return false
  }

  /// Returns the place of the next copy in a cluster, once.
  mutating func takeNext() -> ClusterRedirects.Next { redirects?.takeNext() ?? .byMap }

  /// The reason why the time-out passed without a result.
  var slowness: String { redirects?.reason ?? "Redis was too slow to take the command" }

  /// Restarts the time-out if it was this process that stood still: Redis has refused every copy as late, none was
  /// lost, and the time-out passed before the refusal was read. The limit on late replies bounds the restarts.
  @inline(__always)
  mutating func beginAnew(at now: @autoclosure () -> BootInstant) {
    guard lateCount > 0, lost == nil else { return }
    let now = now()
    guard deadline <= now else { return }
    deadline = now + timeout
  }

  /// Restarts the time-out of a command that has no deadline once it is written.
  mutating func restart(at now: BootInstant) { deadline = now + timeout }

  /// Returns the error of a call that failed for this reason, or, if a copy was lost before, the error that its outcome
  /// is unknown.
  @inline(never)
  func error(_ reason: String) -> StoreError { lost.map { .fateUnknown($0) } ?? .unavailable(reason) }

  /// Returns the error of a call that was refused for this reason, or, if a copy was lost before, the error that its
  /// outcome is unknown.
  func refused(_ reason: String) -> StoreError { lost.map { .fateUnknown($0) } ?? .refused(reason) }
}
