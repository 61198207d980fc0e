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

/// An estimate of the store's clock that is never ahead of it.
///
/// A reply has the time at which its script ran, before its receipt. From there on this machine's clock is counted, a
/// thousandth slow. After a long time without replies the estimate lags, and a claim is refused as late.
///
/// Redis' time is wall time. A reply bounds its difference to this machine's clock from both sides; one that
/// contradicts earlier bounds, by more than clocks drift apart, is a step.
struct RedisClock {
  private struct Bounds {
    var low: Int64
    var high: Int64
    var at: BootInstant
  }

  /// The smallest step that counts, in milliseconds: the margin of the shortest lease.
  private static let minStep: Int64 = 100

  private var bounds: Bounds?
  var difference: Int64 { bounds?.low ?? 0 }
  private var lastTime: StoreInstant?
  private var at = BootInstant(nanoseconds: 0)

  /// Takes the store's time from a reply. `sentAt` may be earlier than the writing of the command.
  ///
  /// - Returns: The step of the store's clock since earlier replies, also those of an earlier connection.
  mutating func update(to now: StoreInstant, sentAt: BootInstant, at: BootInstant) -> Milliseconds? {
    lastTime = now
    self.at = at
    let new = Bounds(
      low: now.milliseconds - at.nanoseconds / 1_000_000 - 1,
      high: now.milliseconds - sentAt.nanoseconds / 1_000_000 + 1,
      at: at)
    guard let old = bounds else {
      bounds = new
      return nil
    }
    let drift = (at - old.at).count / 1000 + 1
    let (low, high) = (old.low - drift, old.high + drift)
    if new.low > high + Self.minStep || new.high < low - Self.minStep {
      bounds = new
      return Milliseconds(new.low > high ? new.low - high : new.high - low)
    }
    bounds = Bounds(
      low: new.high < low ? new.low : max(low, new.low),
      high: new.low > high ? new.high : min(high, new.high), at: at)
    return nil
  }

  /// Discards the estimate of an earlier connection.
  mutating func reset() { lastTime = nil }

  func estimate(at now: BootInstant) -> StoreInstant? {
    lastTime.map { $0 + Milliseconds((now - at).count * 999 / 1000) }
  }
}
