import Idempotency

/// The results of the copies of one command: whether it is written again, or else which error is thrown. Pure.
struct CommandAttempts {
  /// The number of late replies after which a command fails. The first one corrects the estimate of the store's clock.
  private static let maxLateCount = 3

  private let timeout: Milliseconds
  private(set) var deadline: BootInstant
  /// Whether no copy has a result yet.
  private(set) var areNone = true
  /// The reason for which the reply to a copy that may have been executed will not arrive; `nil` if there is none.
  private(set) var lost: String?
  /// Whether the command carries the whole script.
  private(set) var sendsWhole = false
  private var redirects: ClusterRedirects?
  private var lateCount = 0

  init(timeout: Milliseconds, deadline: BootInstant) {
    self.timeout = timeout
    self.deadline = deadline
  }

  /// Takes the result of a copy. False if the command must be written again.
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

  mutating func takeNext() -> ClusterRedirects.Next { redirects?.takeNext() ?? .byMap }

  var slowness: String { redirects?.reason ?? "Redis was too slow to take the command" }

  /// Restarts the time-out if it was this process that stood still: Redis has refused every copy as late, none was
  /// lost, and the time-out passed before the refusal was read.
  @inline(__always)
  mutating func beginAnew(at now: @autoclosure () -> BootInstant) {
    guard lateCount > 0, lost == nil else { return }
    let now = now()
    guard deadline <= now else { return }
    deadline = now + timeout
  }

  mutating func restart(at now: BootInstant) { deadline = now + timeout }

  /// The error of a call that failed for this reason, or whose outcome is unknown, since a copy was lost.
  @inline(never)
  func error(_ reason: String) -> StoreError { lost.map { .fateUnknown($0) } ?? .unavailable(reason) }

  /// The same for a call that was refused.
  func refused(_ reason: String) -> StoreError { lost.map { .fateUnknown($0) } ?? .refused(reason) }
}
