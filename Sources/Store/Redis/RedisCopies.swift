import Idempotency

/// What the copies of one command have come to: whether it is written again, and what may be said of it where it is not.
/// Pure.
struct RedisCopies {
  /// How often a claim may come too late. The first such reply corrects the estimate of the store's clock; the
  /// second may meet a Redis that froze again.
  private static let greatestLateCount = 3

  private let timeout: Milliseconds
  /// When the call's time is over.
  private(set) var deadline: BootInstant
  /// Whether nothing came of any copy yet.
  private(set) var areNone = true
  /// Why the reply to a copy will not come; that one may have been run.
  private(set) var lost: String?
  /// Whether the script itself goes with the command.
  private(set) var sendsWhole = false
  private var lateCount = 0

  /// - Parameter timeout: of a whole call.
  init(timeout: Milliseconds, deadline: BootInstant) {
    self.timeout = timeout
    self.deadline = deadline
  }

  /// Whether this is the command's answer; else it is written again.
  @inline(never)
  mutating func answered(_ ending: RedisAnswer.Ending) throws(StoreError) -> Bool {
    areNone = false
    switch ending {
    case .told(let told) where told.word == .late:
      lateCount += 1
      guard lateCount < Self.greatestLateCount else { throw error("Redis ran the claim after its time") }
    case .done, .told: return true
    case .refused(let text) where RedisRefusal.isScriptMissing(text) && !sendsWhole: sendsWhole = true
    case .refused(let text): throw lost.map { .fateUnknown($0) } ?? RedisRefusal.error(text)
    case .lost(let reason): lost = reason
    case .timedOut: lost = "Redis did not answer in \(timeout.count) ms"
    case .unwritten: break
    }
    return false
  }

  /// Gives the call its time anew where it was this process that stood still: Redis has refused every copy as too late,
  /// none was lost, and the time was over before the refusal was read. Bounded by the count of late ones.
  @inline(__always)
  mutating func beginAnew(at now: BootInstant) {
    guard lateCount > 0, lost == nil, deadline <= now else { return }
    deadline = now + timeout
  }

  /// Why there is no answer: for this reason, unless a copy was lost before.
  @inline(never)
  func error(_ reason: String) -> StoreError { lost.map { .fateUnknown($0) } ?? .unavailable(reason) }

  /// Why no copy is written any more, unless one was lost before.
  func refused(_ reason: String) -> StoreError { lost.map { .fateUnknown($0) } ?? .refused(reason) }
}
