import Idempotency
import ServiceLifecycle
import Synchronization
import Telemetry

/// How many records stand open.
struct RecordCount: Sendable {
  private(set) var counts: [OpenState: Int] = [.inFlight: 0, .unknown: 0]
  private(set) var oldest: [OpenState: Milliseconds] = [.inFlight: 0, .unknown: 0]

  mutating func add(_ record: OpenRecord) {
    let state: OpenState =
      switch record.standing {
      case .unknown: .unknown
      default: .inFlight
      }
    counts[state, default: 0] += 1
    oldest[state] = max(oldest[state] ?? 0, record.age)
  }

  init() {}
}

extension RecordCount {
  private static let order: [OpenState] = [.inFlight, .unknown]

  /// As it is shared with other nodes: the numbers, then the ages of the oldest.
  func text(at: Int64) -> String {
    let numbers = Self.order.map { counts[$0] ?? 0 } + Self.order.map { Int((oldest[$0] ?? 0).count) }
    return (numbers + [Int(at)]).map { "\($0)" }.joined(separator: " ")
  }

  /// `nil` for what another version wrote.
  static func read(_ text: String) -> (count: RecordCount, at: Int64)? {
    let numbers = text.split(separator: " ").map { Int64($0) }
    guard numbers.count == 5, case let known = numbers.compactMap({ $0 }), known.count == 5 else {
      return nil
    }
    var count = RecordCount()
    for (index, state) in order.enumerated() {
      count.counts[state] = Int(known[index])
      count.oldest[state] = Milliseconds(known[index + 2])
    }
    return (count, known[4])
  }
}

/// Counts the store's open records now and then, for the metrics page.
///
/// A count walks over the whole store. Where several nodes share that, one counts and the others read what it found.
public final class RecordCensus: Service {
  /// As often as Prometheus mostly asks.
  private static let pause = Duration.seconds(15)

  /// Whoever counts keeps the turn this long at a time: after a crash another takes it.
  private static let turn = Milliseconds.seconds(60)

  private let desk: RecordDesk
  private let board: (any CensusBoard)?
  private let token = OwnerToken.random()
  private let last = Mutex<(count: RecordCount, at: Int64)?>(nil)

  /// - Parameter board: Where several nodes share the store; else `nil`.
  public init(desk: RecordDesk, board: (any CensusBoard)? = nil) {
    self.desk = desk
    self.board = board
  }

  public func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        try? await Task.sleep(for: await self.look())
      }
    }
  }

  /// Reads the count or makes it; and the pause until the next look.
  private func look() async -> Duration {
    guard let board else { return max(Self.pause, await count(goingOn: {}) * 100) }
    if let text = try? await board.lastCount(), let known = RecordCount.read(text) {
      last.withLock { $0 = known }
      return Self.pause
    }
    guard (try? await board.takeTurn(token, for: Self.turn)) == true else { return Self.pause }
    let span = await count { [token] in _ = try? await board.takeTurn(token, for: Self.turn) }
    if let (count, at) = last.withLock({ $0 }) {
      let kept = max(Self.pause * 2, span * 4)
      try? await board.post(count.text(at: at), for: Milliseconds(kept.components.seconds * 1000))
    }
    return Self.pause
  }

  /// Counts; and how long it took.
  private func count(goingOn: @Sendable () async -> Void) async -> Duration {
    let startedAt = ContinuousClock.now
    if let count = try? await desk.count(goingOn: goingOn), !Task.isCancelled {
      last.withLock { $0 = (count, Timestamp.milliseconds()) }
    }
    return ContinuousClock.now - startedAt
  }

  public var figures: [MetricFigure] {
    guard let (count, at) = last.withLock({ $0 }) else { return [MetricFigure(.recordsCounted, 0)] }
    return OpenState.allCases.flatMap { state in
      [
        MetricFigure(.openRecords, count.counts[state] ?? 0, (OpenState.key, state.text)),
        MetricFigure(
          .oldestRecord, Double((count.oldest[state] ?? 0).count) / 1000, (OpenState.key, state.text)),
      ]
    } + [MetricFigure(.recordsCounted, Double(at) / 1000)]
  }
}
