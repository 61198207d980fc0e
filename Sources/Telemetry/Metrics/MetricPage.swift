import Glibc
import Idempotency
import Platform

/// The metrics page under construction: samples by family, written in the order of `MetricFamily.all`.
struct MetricPage {
  /// The route label of requests that match no route.
  private static let unrouted = "(none)"

  private var samples: [MetricFamily: String] = [:]

  static func route(_ name: String) -> (key: String, value: String) {
    ("route", name.isEmpty ? unrouted : name)
  }

  /// Adds a figure, but no counter of 0 that is not on the page from the start.
  mutating func add(_ figure: MetricFigure) {
    guard figure.value != 0 || figure.family.begins(with: figure.labels) else { return }
    add(figure.family, figure.value, labels: Self.text(of: figure.labels))
  }

  mutating func add(_ family: MetricFamily, _ value: Int, _ labels: (key: String, value: String)...) {
    guard value != 0 || family.begins(with: labels) else { return }
    sample(family, family.name, Self.text(of: labels), "\(value)")
  }

  mutating func add(_ family: MetricFamily, _ value: Double, labels: String) {
    sample(family, family.name, labels, Self.number(value))
  }

  mutating func add(
    _ family: MetricFamily, _ histogram: HistogramFigures, _ labels: (key: String, value: String)...
  ) {
    add(family, histogram, labels: Self.text(of: labels))
  }

  /// Adds a histogram that has values.
  mutating func add(_ family: MetricFamily, _ histogram: HistogramFigures, labels: String) {
    guard histogram.count > 0 else { return }
    let bucket = labels.isEmpty ? "" : labels + ","
    for (bound, count) in zip(histogram.buckets.texts, histogram.cumulative) {
      sample(family, family.name + "_bucket", bucket + "le=\"\(bound)\"", "\(count)")
    }
    sample(family, family.name + "_bucket", bucket + "le=\"+Inf\"", "\(histogram.count)")
    sample(family, family.name + "_sum", labels, Self.number(histogram.sum))
    sample(family, family.name + "_count", labels, "\(histogram.count)")
  }

  /// All families of `MetricFamily.all`, and then those of libraries.
  var text: String {
    let others = Set(samples.keys).subtracting(MetricFamily.all).sorted { $0.name < $1.name }
    return (MetricFamily.all + others).map { family in
      "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n"
        + samples[family, default: ""]
    }.joined()
  }

  static func text(of labels: [(key: String, value: String)]) -> String {
    labels.map { "\($0.key)=\"\(escaped($0.value))\"" }.joined(separator: ",")
  }

  private mutating func sample(_ family: MetricFamily, _ name: String, _ labels: String, _ value: String) {
    let braced = labels.isEmpty ? "" : "{\(labels)}"
    samples[family, default: ""] += "\(name)\(braced) \(value)\n"
  }

  private static func escaped(_ text: String) -> String {
    guard text.utf8.contains(where: { Self.isEscaped($0) }) else { return text }
    var escaped = ""
    for character in text.unicodeScalars {
      switch character {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.unicodeScalars.append(character)
      }
    }
    return escaped
  }

  private static func isEscaped(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\n")
  }

  private static func number(_ value: Double) -> String {
    guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
    return value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
  }
}

extension Metrics {
  func addRoutes(_ routes: [String], to page: inout MetricPage) {
    for (number, name) in routes.enumerated() {
      let rows = loops.map { $0.row(number) }
      let route = MetricPage.route(name)
      addHistograms(rows, route, to: &page)
      for label in RouteLayout.labels { addCounts(by: label, rows, route, to: &page) }
      addCounts(rows, route, to: &page)
    }
  }

  private func addHistograms(
    _ rows: [MetricCells], _ route: (key: String, value: String), to page: inout MetricPage
  ) {
    func histogram(_ buckets: Buckets, _ start: Int) -> HistogramFigures {
      var figures = HistogramFigures(buckets)
      for row in rows { figures.add(row, at: start) }
      return figures
    }
    for outcome in RequestOutcome.allCases {
      let duration = histogram(.durations, RouteLayout.duration(outcome))
      let label = (RequestOutcome.key, outcome.text)
      page.add(.requests, duration.count, route, label)
      page.add(.requestDuration, duration, route, label)
    }
    for part in RequestPart.allCases {
      page.add(
        .partDuration, histogram(.durations, RouteLayout.part(part)), route, (RequestPart.key, part.text))
    }
    page.add(.timeToSuccess, histogram(.attempts, RouteLayout.timeToSuccess), route)
  }

  private func addCounts<Label: RouteLabel>(
    by _: Label.Type, _ rows: [MetricCells], _ route: (key: String, value: String), to page: inout MetricPage
  ) {
    for value in Label.allCases {
      page.add(Label.family, rows.sum(at: RouteLayout.count(of: value)), route, (Label.key, value.text))
    }
  }

  private func addCounts(
    _ rows: [MetricCells], _ route: (key: String, value: String), to page: inout MetricPage
  ) {
    func count(_ count: RouteCount) -> Int { rows.sum(at: RouteLayout.count(count)) }
    func replays(from source: ReplaySource) -> Int { rows.sum(at: RouteLayout.count(of: source)) }
    for prevention in Prevention.allCases {
      let sum =
        switch prevention {
        case .replay: replays(from: .cache) + replays(from: .store)
        case .wait: replays(from: .wait)
        case .refusal: count(.duplicateRefused)
        }
      page.add(.duplicatesPrevented, sum, route, (Prevention.key, prevention.text))
    }
    page.add(.clientRetries, count(.clientRetries), route)
    page.add(.attemptsExhausted, count(.attemptsExhausted), route)
    page.add(.lateResponses, count(.lateResponses), route)
    page.add(.losses, count(.outcomesLost), route)
    page.add(.unknownReturns, count(.unknownReturns), route)
    page.add(.unprotectedKeys, count(.unprotectedKeys), route)
    page.add(.payloadsUnderNewKey, count(.payloadsUnderNewKey), route)
    page.add(.requestBytes, count(.requestBytes), route)
    page.add(.responseBytes, count(.responseBytes), route)
  }

  func addLoops(to page: inout MetricPage) {
    func sum(_ index: Int) -> Int { loops.reduce(0) { $0 + $1.own[index] } }
    func histogram(_ start: Int) -> HistogramFigures {
      var figures = HistogramFigures(.durations)
      for loop in loops { figures.add(loop.own, at: start) }
      return figures
    }
    page.add(.loopLag, histogram(LoopLayout.lag))
    for command in StoreCommand.allCases {
      let label = (StoreCommand.key, command.text)
      page.add(.storeDuration, histogram(LoopLayout.command(command)), label)
      for failure in StoreFailure.allCases {
        page.add(
          .storeErrors, sum(LoopLayout.error(command, failure)), label, (StoreFailure.key, failure.text))
      }
    }
    page.add(.storeWait, histogram(LoopLayout.wait))
    page.add(.leasesRenewed, sum(LoopLayout.count(.leasesRenewed)))
    page.add(.leasesLapsed, sum(LoopLayout.count(.leasesLapsed)))
    page.add(.claimsLost, sum(LoopLayout.count(.claimsLost)))
    page.add(.supersededOwners, sum(LoopLayout.count(.supersededOwners)))
    page.add(.keysUnderOtherCaller, sum(LoopLayout.count(.keysUnderOtherCaller)))
  }
}

/// The reference of all metrics: a page that is made from their families, for whoever has no sources.
public enum MetricReference {
  /// The page, in Markdown.
  public static var page: String {
    let rows = MetricFamily.all.map { family in
      let cells = ["`\(family.name)`", family.kind.rawValue, begin(of: family), family.help]
      return "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
    }
    let table = ["| metric | kind | from the start | |", "|---|---|---|---|"] + rows
    return introduction + "\n\n" + table.joined(separator: "\n") + "\n"
  }

  private static func begin(of family: MetricFamily) -> String {
    guard family.kind != .histogram else { return "none" }
    return switch family.initial {
    case .all: "all"
    case .only(let key, let value): "`\(key)=\"\(value)\"`"
    case .none: "none"
    }
  }

  private static let introduction = """
    # All metrics

    Every metric of `/metrics`, in its order. [Metrics and alerts](metrics.md) has them by the question that they answer,
    with their labels. The page is made from the program, and a test holds it to that.

    *From the start* are the series that are there with 0 before they have counted anything. `rate` and `increase` miss
    the first count of any other series: write `or vector(0)` beside it.
    """
}

/// The kernel's numbers about this process.
enum ProcessFigures {
  /// - Parameter start: The time when the process started, in milliseconds since 1970.
  static func read(start: Int64) -> [MetricFigure] {
    var figures = [MetricFigure(.processCPU, Double(processTimeNanoseconds()) / 1_000_000_000)]
    if let pages = SystemFile.text(of: "/proc/self/statm")?.split(separator: " ").dropFirst().first {
      figures.append(MetricFigure(.processMemory, (Int(pages) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))))
    }
    if let count = openFiles() { figures.append(MetricFigure(.processFiles, count)) }
    figures.append(MetricFigure(.processStart, Double(start) / 1000))
    return figures
  }

  private static func openFiles() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    return max(0, count - 3)
  }
}
