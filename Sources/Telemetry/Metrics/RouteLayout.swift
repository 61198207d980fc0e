import Idempotency
import Wire

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
