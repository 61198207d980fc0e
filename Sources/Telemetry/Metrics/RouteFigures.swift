import Idempotency
import Wire

/// The counts of one route since the process began, over all event loops.
public struct RouteFigures: Sendable {
  /// A histogram of durations.
  public struct Durations: Sendable {
    /// The number of values below each bound, and of those beyond the last; each with the bound in seconds.
    public let buckets: [(bound: Double?, count: Int)]
    public let count: Int
    public let meanSeconds: Double
  }

  /// The route's name; empty for the requests that match none.
  public let name: String
  public let outcomes: [RequestOutcome: Int]
  public let refusals: [RefusalReason: Int]
  public let suspicions: [Suspicion: Int]
  public let parts: [RequestPart: Durations]
  /// Replays that waited for a response in flight, which are a part of those replayed.
  public let waited: Int
  /// Outcomes that were lost.
  public let lost: Int

  /// The counts that a chart shows, in its order.
  public var series: [Int] {
    let (replayed, refused) = (outcomes[.replayed] ?? 0, outcomes[.refused] ?? 0)
    // The delivery whose outcome was lost is refused, too.
    return [
      outcomes[.executed] ?? 0, replayed - min(waited, replayed), waited, refused - min(lost, refused), lost,
    ]
  }

  /// The requests that had a key and ended.
  public var keyed: Int { series.reduce(0, +) }
}

extension Metrics {
  /// The counts of all routes that this process has ever had, the requests without a route first.
  public var routeFigures: [RouteFigures] {
    routeNames.enumerated().map { number, name in figures(of: name, loops.map { $0.row(number) }) }
  }

  private func figures(of name: String, _ rows: [MetricCells]) -> RouteFigures {
    func counts<Label: MetricLabel>(_ count: (Label) -> Int) -> [Label: Int] {
      Dictionary(uniqueKeysWithValues: Label.allCases.map { ($0, count($0)) })
    }
    func histogram(_ start: Int) -> HistogramFigures {
      var figures = HistogramFigures(.durations)
      for row in rows { figures.add(row, at: start) }
      return figures
    }
    return RouteFigures(
      name: name,
      outcomes: counts { (outcome: RequestOutcome) in histogram(RouteLayout.duration(outcome)).count },
      refusals: counts { rows.sum(at: RouteLayout.count(of: $0)) },
      suspicions: counts { rows.sum(at: RouteLayout.count(of: $0)) },
      parts: Dictionary(
        uniqueKeysWithValues: RequestPart.allCases.map { ($0, histogram(RouteLayout.part($0)).durations) }),
      waited: rows.sum(at: RouteLayout.count(of: ReplaySource.wait)),
      lost: rows.sum(at: RouteLayout.count(.outcomesLost)))
  }
}

extension HistogramFigures {
  fileprivate var durations: RouteFigures.Durations {
    let bounds = buckets.bounds.map { Double($0) / buckets.scale } as [Double?]
    return RouteFigures.Durations(
      buckets: zip(bounds + [nil], perBucket).map { (bound: $0, count: $1) }, count: count,
      meanSeconds: count > 0 ? sum / Double(count) : 0)
  }
}

/// The single counts of a route, which it has besides its histograms and the counts by a label.
public enum RouteCount: Int, CaseIterable, Sendable {
  case duplicateRefused, lateResponses, outcomesLost, unknownReturns, requestBytes, responseBytes,
    unprotectedKeys, clientRetries, attemptsExhausted, payloadsUnderNewKey
}

/// A label by which requests of a route are counted: each of its values has a count of its own.
public protocol RouteLabel: MetricLabel {
  /// The family on the page that has these counts, and no others.
  static var family: MetricFamily { get }
  /// The position of the first value's count in a route's row of cells.
  static var start: Int { get }
}

extension ReplaySource: RouteLabel {
  public static let family = MetricFamily.replays
  public static let start = RouteLayout.start(of: Self.self)
}

extension RetryCause: RouteLabel {
  public static let family = MetricFamily.retries
  public static let start = RouteLayout.start(of: Self.self)
}

extension RetryStop: RouteLabel {
  public static let family = MetricFamily.clientRetryEnds
  public static let start = RouteLayout.start(of: Self.self)
}

extension UnkeptReason: RouteLabel {
  public static let family = MetricFamily.unkept
  public static let start = RouteLayout.start(of: Self.self)
}

extension BatchItemEnd: RouteLabel {
  public static let family = MetricFamily.batchItems
  public static let start = RouteLayout.start(of: Self.self)
}

extension Reconciliation: RouteLabel {
  public static let family = MetricFamily.reconciliations
  public static let start = RouteLayout.start(of: Self.self)
}

extension FailureCategory: RouteLabel {
  public static let family = MetricFamily.failures
  public static let start = RouteLayout.start(of: Self.self)
}

extension Suspicion: RouteLabel {
  public static let family = MetricFamily.suspicious
  public static let start = RouteLayout.start(of: Self.self)
}

extension RefusalReason: RouteLabel {
  public static let family = MetricFamily.refusals
  public static let start = RouteLayout.start(of: Self.self)
}

extension ShadowVerdict: RouteLabel {
  public static let family = MetricFamily.shadow
  public static let start = RouteLayout.start(of: Self.self)
}

/// The position of each number in a route's row of cells.
enum RouteLayout {
  static let labels: [any RouteLabel.Type] = [
    ReplaySource.self, RetryCause.self, RetryStop.self, UnkeptReason.self, BatchItemEnd.self,
    Reconciliation.self, FailureCategory.self, Suspicion.self, RefusalReason.self, ShadowVerdict.self,
  ]

  private static let durations = Buckets.durations.cells
  private static let parts = RequestOutcome.allCases.count * durations
  static let timeToSuccess = parts + RequestPart.allCases.count * durations
  private static let counts = timeToSuccess + Buckets.attempts.cells
  static let size = start(of: nil)

  static func duration(_ outcome: RequestOutcome) -> Int { outcome.rawValue * durations }
  static func part(_ part: RequestPart) -> Int { parts + part.rawValue * durations }
  static func count(_ count: RouteCount) -> Int { counts + count.rawValue }
  static func count<Label: RouteLabel>(of value: Label) -> Int { Label.start + value.rawValue }

  /// The position of a label's counts; the end of the row without a label.
  static func start(of label: (any RouteLabel.Type)?) -> Int {
    let before = labels.prefix { $0 != label }
    invariant(label == nil || before.count < labels.count, "a label has no place in a route's row of cells")
    return before.reduce(counts + RouteCount.allCases.count) { $0 + $1.values.count }
  }
}

/// The counts of an event loop that belong to no route.
public enum LoopCount: Int, CaseIterable, Sendable {
  case leasesRenewed, leasesLapsed, claimsLost, supersededOwners, keysUnderOtherCaller
}

/// The position of each number in an event loop's own row of cells.
enum LoopLayout {
  private static let durations = Buckets.durations.cells
  private static let errors = (1 + StoreCommand.allCases.count) * durations
  private static let counts = errors + StoreCommand.allCases.count * StoreFailure.allCases.count
  static let wait = counts + LoopCount.allCases.count
  static let size = wait + durations

  static let lag = 0
  static func command(_ command: StoreCommand) -> Int { (1 + command.rawValue) * durations }
  static func error(_ command: StoreCommand, _ failure: StoreFailure) -> Int {
    errors + command.rawValue * StoreFailure.allCases.count + failure.rawValue
  }
  static func count(_ count: LoopCount) -> Int { counts + count.rawValue }
}

/// The end that a request of a shadowed route would have had if the route were in force.
public enum ShadowVerdict: MetricLabel {
  /// It would have run as the first delivery, or as the next attempt of one that may be repeated.
  case executed
  case replayed
  /// It came while another delivery of its intent ran, and would have waited for that one's outcome.
  case waited
  /// It has no key, and the route requires none.
  case passed
  /// The store was unavailable, and the route runs requests without it.
  case unprotected
  case refused(RefusalReason)

  private static let own: [ShadowVerdict] = [.executed, .replayed, .waited, .passed, .unprotected]

  public static let allCases: [ShadowVerdict] = own + RefusalReason.allCases.map(ShadowVerdict.refused)
  public static let key = "would"
  public static let values =
    ["executed", "replayed", "waited", "passed", "unprotected"] + RefusalReason.values

  public init?(rawValue: Int) {
    guard Self.allCases.indices.contains(rawValue) else { return nil }
    self = Self.allCases[rawValue]
  }

  public var rawValue: Int {
    switch self {
    case .executed: 0
    case .replayed: 1
    case .waited: 2
    case .passed: 3
    case .unprotected: 4
    case .refused(let reason): Self.own.count + reason.rawValue
    }
  }
}
