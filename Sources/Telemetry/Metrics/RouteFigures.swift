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
