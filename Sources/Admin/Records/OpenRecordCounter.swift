import Idempotency
import Platform
import ServiceLifecycle
import Synchronization
import Telemetry

/// The number of open records, and the age of the oldest, by state.
struct RecordCount: Sendable {
  private(set) var counts: [OpenState: Int] = [.inFlight: 0, .unknown: 0, .unreadable: 0]
  /// The age of the oldest record, by state. That of an unreadable record is not known.
  private(set) var oldest: [OpenState: Milliseconds] = [.inFlight: 0, .unknown: 0]

  mutating func add(_ record: RecordView) {
    let state: OpenState =
      switch record.standing {
      case .unknown: .unknown
      default: .inFlight
      }
    counts[state, default: 0] += 1
    oldest[state] = max(oldest[state] ?? 0, record.age)
  }

  mutating func add(unreadable number: Int) { counts[.unreadable, default: 0] += number }

  init() {}
}

extension RecordCount {
  fileprivate static let order: [OpenState] = [.inFlight, .unknown, .unreadable]
  fileprivate static let aged: [OpenState] = [.inFlight, .unknown]

  /// Returns the text that is shared with other nodes: the counts, the ages of the oldest, and the time of the count.
  func text(at: Int64) -> String {
    let numbers = Self.order.map { counts[$0] ?? 0 } + Self.aged.map { Int((oldest[$0] ?? 0).count) }
    return (numbers + [Int(at)]).map { "\($0)" }.joined(separator: " ")
  }

  /// Parses the text of another node; `nil` for a format of another version.
  static func read(_ text: String) -> (count: RecordCount, at: Int64)? {
    let numbers = text.split(separator: " ").map { Int64($0) }
    let known = numbers.compactMap { $0 }
    guard known.count == numbers.count, known.count == order.count + aged.count + 1 else { return nil }
    var count = RecordCount()
    for (index, state) in order.enumerated() { count.counts[state] = Int(known[index]) }
    for (index, state) in aged.enumerated() {
      count.oldest[state] = Milliseconds(known[order.count + index])
    }
    return (count, known[known.count - 1])
  }
}

/// Counts the open records periodically, for the metrics page, and repairs their index. Of several nodes one counts,
/// walks slowly through the whole store in its pauses, and enters what the index lacks: records of an earlier version,
/// and of processes that died. After the start of a process it walks once quickly.
public final class OpenRecordCounter: Service {
  /// The pause between two counts: Prometheus' usual scrape interval.
  private static let pause = Duration.seconds(15)

  /// The duration of a turn to count, two pauses, with each of which it is extended. After a crash of the node that
  /// counts, another one, or its successor, takes over when the turn expires.
  private static let turn = Milliseconds.seconds(30)

  /// The age from which on a lapsed lease is a loss, in milliseconds: an owner that lives renews it before.
  private static let minLapse: Milliseconds = 5000

  /// The age from which on a lapse is reported no more: a process that begins does not report all of them again.
  private static let maxLapse = Milliseconds.seconds(3600)

  private let recordAdmin: RecordAdmin
  private let board: (any OpenRecordBoard)?
  private let token = OwnerToken.random()
  private let last = Mutex<(count: RecordCount, at: Int64)?>(nil)
  /// The beginning of this process's latest walk; `nil` before the first.
  private let walkedAt = Mutex<ContinuousClock.Instant?>(nil)

  /// The time until which a store without an index is not walked again.
  private let walkDueAt = Mutex(ContinuousClock.now)

  /// The walk that repairs the index.
  private struct Repair {
    var cursor: String?
    var isUrgent = false
    /// Whether this node walks, since it was the one that counted last.
    var isOwn = false
    /// Whether a quick walk has ended since the last count, which may have found what that lacks.
    var isCountDue = false
  }

  private let repair = Mutex(Repair())

  /// - Parameter board: The place where nodes exchange the count; `nil` if they do not share the store.
  public init(recordAdmin: RecordAdmin, board: (any OpenRecordBoard)? = nil) {
    self.recordAdmin = recordAdmin
    self.board = board
  }

  public func run() async throws {
    await cancelWhenGracefulShutdown {
      try? await self.board?.wishRepair()
      while !Task.isCancelled {
        try? await Task.sleep(for: await self.look())
      }
    }
  }

  /// Reads the count, or makes it. Returns the pause until the next time.
  private func look() async -> Duration {
    guard let board else { return await lookAlone() }
    if !repair.withLock(\.isCountDue), let text = try? await board.lastCount(),
      let known = RecordCount.read(text)
    {
      last.withLock { $0 = known }
      return await repairIndex(by: board)
    }
    guard (try? await board.takeTurn(token, for: Self.turn)) == true else {
      repair.withLock { $0 = Repair() }
      return Self.pause
    }
    repair.withLock {
      $0.isOwn = true
      $0.isCountDue = false
    }
    let span = await count { [token] in _ = try? await board.takeTurn(token, for: Self.turn) }
    if let (count, at) = last.withLock({ $0 }) {
      let lifetime = max(Self.pause * 2, span * 4)
      try? await board.post(count.text(at: at), for: .seconds(lifetime.components.seconds))
    }
    return await repairIndex(by: board)
  }

  /// Makes the count of a store that no other node shares. One that has to be walked is left alone for a hundred times as
  /// long, but not once it has its index, seconds after a start.
  private func lookAlone() async -> Duration {
    let usesIndex = await recordAdmin.usesIndex()
    guard usesIndex || ContinuousClock.now >= walkDueAt.withLock({ $0 }) else { return Self.pause }
    let span = await count(onProgress: {})
    walkDueAt.withLock { $0 = ContinuousClock.now + span * 100 }
    return max(Self.pause, usesIndex ? span * 10 : .zero)
  }

  /// Walks on for one pause at most, if that is this node's task. Returns what is left of the pause.
  private func repairIndex(by board: any OpenRecordBoard) async -> Duration {
    let end = ContinuousClock.now + Self.pause
    guard repair.withLock(\.isOwn) else { return Self.pause }
    guard (try? await board.takeTurn(token, for: Self.turn)) == true else {
      repair.withLock { $0 = Repair() }
      return Self.pause
    }
    if (try? await board.takeRepairWish()) == true {
      repair.withLock { $0 = Repair(isUrgent: true, isOwn: true) }
    }
    var (walk, isOver) = (repair.withLock { $0 }, false)
    repeat {
      do throws(AdminError) {
        walk.cursor = try await recordAdmin.repairIndex(after: walk.cursor, isUrgent: walk.isUrgent)
        isOver = walk.cursor == nil
      } catch {
        break
      }
    } while !isOver && ContinuousClock.now < end && !Task.isCancelled
    if isOver {
      // A small store is counted by a walk, which has found the same.
      let usesIndex = await recordAdmin.usesIndex()
      walk.isCountDue = walk.isUrgent && usesIndex
      walk.isUrgent = false
    }
    repair.withLock { [walk] in $0 = walk }
    return walk.isCountDue ? .zero : max(.zero, end - ContinuousClock.now)
  }

  /// Makes the count and returns its duration. Calls `onProgress` periodically.
  private func count(onProgress: @Sendable () async -> Void) async -> Duration {
    let startedAt = ContinuousClock.now
    let lapsed = Self.minLapse..<newLapses(at: startedAt)
    if let count = try? await recordAdmin.count(lapsed: lapsed, onProgress: onProgress), !Task.isCancelled {
      walkedAt.withLock { $0 = startedAt }
      last.withLock { $0 = (count, WallClock.milliseconds()) }
    }
    return ContinuousClock.now - startedAt
  }

  /// The age below which a lapse is none that this process's latest walk has found.
  private func newLapses(at now: ContinuousClock.Instant) -> Milliseconds {
    guard let before = walkedAt.withLock({ $0 }) else { return Self.maxLapse }
    // Records are seen some time after a walk has begun.
    return min(
      Self.maxLapse, Milliseconds.seconds((now - before).components.seconds) + Self.minLapse + Self.minLapse)
  }

  /// The numbers of the latest count, for the metrics page.
  public var figures: [MetricFigure] {
    guard let (count, at) = last.withLock({ $0 }) else { return [MetricFigure(.recordsCounted, 0)] }
    return RecordCount.order.map { state in
      MetricFigure(.openRecords, count.counts[state] ?? 0, (OpenState.key, state.text))
    }
      + RecordCount.aged.map { state in
        MetricFigure(
          .oldestRecord, Double((count.oldest[state] ?? 0).count) / 1000, (OpenState.key, state.text))
      } + [MetricFigure(.recordsCounted, Double(at) / 1000)]
  }
}
