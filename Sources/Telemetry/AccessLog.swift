import Idempotency
import Platform
import Synchronization
import Wire

/// Writes one entry per request to the access log.
public struct AccessLog: Sendable {
  private let sink: LogSink
  private let format: LogFormat
  /// Whether any entry is written.
  public let isEnabled: Bool
  /// The sampling interval of replays.
  private let replaySample: Int
  private let replays = ReplayCount()
  private let refusals = Refusals()

  /// - Parameter replaySample: The sampling interval of replays: one of this many is written, and 0 writes none.
  public init(sink: LogSink, format: LogFormat, isEnabled: Bool, replaySample: Int = 1) {
    self.sink = sink
    self.format = format
    self.isEnabled = isEnabled
    self.replaySample = replaySample
  }

  /// Writes the entry of an ended request, unless the log is disabled, sampling omits it, or too many come from
  /// strangers.
  ///
  /// - Parameters:
  ///   - now: The time of a monotonic clock, in nanoseconds.
  ///   - line: The caller's memory in which the entry is formatted.
  /// - Returns: Whether to call `writeLeftOut` in a second.
  public func write(
    _ entry: borrowing AccessLogEntry, now: @autoclosure () -> UInt64, in line: inout LogLine
  ) -> Bool {
    guard isEnabled, isWanted(entry) else { return false }
    if let reason = entry.refusal, entry.outcome == .refused, entry.callerDigest == nil,
      case .leaveOut(let isFirst) = refusals.pace.withLock({ [now = now()] in $0.count(reason, now: now) })
    {
      return isFirst
    }
    write(entry, in: &line)
    return false
  }

  /// Writes the numbers of the entries that were left out.
  public func writeLeftOut() {
    for (reason, count) in refusals.pace.withLock({ $0.takeLeftOut() }) {
      var line = LogLine(format: format)
      line.addTime()
      line.add("level", "info")
      line.add("message", "refused requests left out")
      line.add("reason", reason.text)
      line.add("count", count)
      sink.write(line.end())
    }
  }

  private func write(_ entry: borrowing AccessLogEntry, in line: inout LogLine) {
    line.restart(as: format)
    line.addTime()
    line.add("level", "info")
    line.add("message", "request")
    if let route = entry.route { line.add("route", route) }
    if let template = entry.pathTemplate { line.add("path", template) }
    if let client = entry.client { line.add("client", client) }
    line.add("method", entry.method ?? "")
    line.add("status", entry.status ?? 0)
    line.add("outcome", entry.outcome.text)
    addDetails(of: entry, to: &line)
    line.add("request_bytes", entry.requestBytes)
    line.add("response_bytes", entry.responseBytes)
    line.add("duration_ms", microseconds: entry.totalMicroseconds ?? 0)
    if let time = entry.claimMicroseconds { line.add("claim_ms", microseconds: time) }
    if let time = entry.upstreamMicroseconds { line.add("upstream_ms", microseconds: time) }
    if let time = entry.recordMicroseconds { line.add("record_ms", microseconds: time) }
    if let trace = entry.trace { line.add("trace_id", traceOf: trace.context) }
    if entry.hungUp { line.add("hung_up", "true") }
    if entry.outcome == .replayed, replaySample > 1 { line.add("sample", replaySample) }
    sink.write(line.end())
  }

  private func addDetails(of entry: borrowing AccessLogEntry, to line: inout LogLine) {
    if let refusal = entry.refusal { line.add("reason", refusal.text) }
    if let loss = entry.loss { line.add("cause", loss.rawValue) }
    if let differs = entry.differs { line.add("differs", differs) }
    if let would = entry.would { line.add("would", would.text) }
    if let source = entry.source { line.add("source", source.text) }
    if let attempt = entry.attempt { line.add("attempt", attempt) }
    if let digest = entry.keyDigest { line.add("key", digest) }
    if let digest = entry.callerDigest { line.add("caller", digest) }
    if let id = entry.recordID { line.add("record", id) }
    if let items = entry.items { line.add("items", items) }
    if let ids = entry.itemRecords { line.add("records", ids) }
  }

  private func isWanted(_ entry: borrowing AccessLogEntry) -> Bool {
    guard entry.outcome == .replayed, replaySample != 1 else { return true }
    return replaySample > 0 && replays.next() % replaySample == 0
  }
}

private final class Refusals: Sendable {
  let pace = Mutex(RefusalPace())
}

private final class ReplayCount: Sendable {
  private let count = Atomic<Int>(0)

  func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).oldValue }
}

/// The facts about one ended request, for the access log and for the metrics: no key, no token and no body.
/// Noncopyable, since a copy would retain each string.
public struct AccessLogEntry: ~Copyable, Sendable {
  /// The name of the route; `nil` if the request matched none.
  public var route: String?
  /// The row of the metrics that counts the request, by `Metrics.number(ofRoute:)`; 0 without a route.
  public var routeNumber = 0
  /// The route's path template, such as `/v1/orders/{id}`; `nil` if the route has none. Never the request's own path.
  public var pathTemplate: String?
  /// The client's address, as forwarded by a trusted proxy; `nil` for a Unix socket, and until the entry is needed.
  public var client: String?
  /// The request's method, as the client spelt it; `nil` until the entry is needed.
  public var method: String?
  /// The status of the response; `nil` if there was none.
  public var status: Int?
  /// The outcome; `cut` until another one is set.
  public var outcome = RequestOutcome.cut
  /// The problem that Semel refused the request with; `nil` if it did not refuse it.
  public var refusal: RefusalReason?
  /// The end that the request would have had; `nil` unless its route is shadowed.
  public var would: ShadowVerdict?
  /// The members by which a refused payload differs from the first one of its key; `nil` if they are not known.
  public var differs: String?
  /// The source of the replay; `nil` if the response is no replay.
  public var source: ReplaySource?
  /// The party at fault; `nil` if the request did not fail.
  public var failure: FailureCategory?
  /// True if Semel refused the request because another delivery of its key has precedence.
  public var isDuplicateRefused = false
  /// The number of the claim's attempt, from 1 on; `nil` if the request has no record.
  public var attempt: Int?
  /// The way in which the previous attempt ended; `nil` for a first attempt.
  public var retry: RetryCause?
  /// The time from the first delivery of the intent to its outcome, across all attempts, in milliseconds.
  public var timeToSuccessMilliseconds: Int64?
  /// The first characters of the key's digest; `nil` if the request has no key, or nobody needs it.
  public var keyDigest: String?
  /// The first characters of the caller's digest; `nil` if the request has no caller, or nobody needs it.
  public var callerDigest: String?
  /// Whether both digests are by the secret of all nodes, as those in records are.
  public var hasSharedDigests = false
  /// The way in which the outcome of the request's attempt, or of that it was refused for, was lost.
  public var loss: LossCause?
  /// The record's ID, as sent to the backend; `nil` if the request has no record.
  public var recordID: RecordID?
  /// The number of a batch's items; `nil` for any other request.
  public var items: Int?
  /// The IDs of the first records of a batch, with commas between them.
  public var itemRecords: String?
  /// The number of bytes received of the request's body.
  public var requestBytes = 0
  /// The number of bytes sent of the response, including its head.
  public var responseBytes = 0
  /// The time from the arrival of the head to the end of the response, in microseconds; `nil` before that.
  public var totalMicroseconds: Int64?
  /// The part of it for the claim, in microseconds; `nil` if there was none.
  public var claimMicroseconds: Int64?
  /// The part of it for the backend, in microseconds; `nil` if there was none.
  public var upstreamMicroseconds: Int64?
  /// The part of it for storing the outcome, in microseconds; `nil` if there was none.
  public var recordMicroseconds: Int64?
  /// Whether the client disconnected before the end of its response.
  public var hungUp = false
  /// The trace that the request belongs to, if any.
  public var trace: RequestTrace?

  public init() {}
}

/// The format of times in log entries and documents: RFC 3339 in UTC with milliseconds, such as
/// `2026-01-31T08:15:30.042Z`.
public enum Timestamp {
  static let length = 24

  private static let template: StaticString = "1970-01-01T00:00:00.000Z"
  private static let last: Int64 = 253_402_300_799_999

  /// Returns the present time.
  public static func now() -> String { text(milliseconds: WallClock.milliseconds()) }

  /// Returns a time, given in milliseconds since 1970.
  public static func text(milliseconds: Int64) -> String {
    String(unsafeUninitializedCapacity: length) { space in
      guard let start = space.baseAddress else { return 0 }
      write(milliseconds: milliseconds, to: start)
      return length
    }
  }

  /// Writes a time, in milliseconds since 1970 and clamped to the years 1970 to 9999.
  static func write(milliseconds: Int64, to place: UnsafeMutableRawPointer) {
    let time = Int(min(max(milliseconds, 0), last))
    let (seconds, rest) = (time / 1000, time % 1000)
    let date = CivilDate(days: seconds / 86_400)
    place.copyMemory(from: template.utf8Start, byteCount: length)
    ASCII.writeTwoDigits(date.year / 100, to: place)
    ASCII.writeTwoDigits(date.year % 100, to: place + 2)
    ASCII.writeTwoDigits(date.month, to: place + 5)
    ASCII.writeTwoDigits(date.day, to: place + 8)
    ASCII.writeTwoDigits(seconds / 3600 % 24, to: place + 11)
    ASCII.writeTwoDigits(seconds / 60 % 60, to: place + 14)
    ASCII.writeTwoDigits(seconds % 60, to: place + 17)
    ASCII.writeTwoDigits(rest / 10, to: place + 20)
    place.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: rest % 10), toByteOffset: 22, as: UInt8.self)
  }
}
