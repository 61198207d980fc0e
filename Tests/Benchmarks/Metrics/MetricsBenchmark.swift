import CoreMetrics
import Dispatch
import Telemetry

/// Counts the figures of one request again and again, in each way of counting them, and prints what one request takes.
///
///     MetricsBenchmark [MILLIONS] [ROUNDS]
///
/// Of the rounds the best one counts. Looking up takes so long that it gets a tenth of the requests.
@main
enum MetricsBenchmark {
  static func main() {
    let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
    let count = (arguments.first ?? 5) * 1_000_000
    let rounds = arguments.count > 1 ? arguments[1] : 5

    let registry = MetricRegistry()
    MetricsSystem.bootstrap(registry)
    let rows = Rows(threads: 2)
    let handlers = Handlers()
    let lookUps = LookUps()

    print("ns a request          rows  handlers made before  handlers looked up")
    for threads in 1...2 {
      for (name, records) in [("replay", Records.replays), ("first run", Records.firstRuns)] {
        let best = (0..<rounds).map { _ in
          (
            nanoseconds(rows, records, threads, count), nanoseconds(handlers, records, threads, count),
            nanoseconds(lookUps, records, threads, count / 10)
          )
        }
        let (row, made, lookedUp) = (
          best.map(\.0).min() ?? 0, best.map(\.1).min() ?? 0, best.map(\.2).min() ?? 0
        )
        print(
          padded("\(name), \(threads) thread\(threads > 1 ? "s" : "")", -20), padded(tenths(row), 5),
          padded("\(tenths(made)) (\(tenths(made / row)) times)", 21),
          padded("\(tenths(lookedUp)) (\(tenths(lookedUp / row)) times)", 19))
      }
    }
  }

  /// The time that one request's figures take a thread while so many count at once.
  private static func nanoseconds(
    _ way: some WayOfCounting, _ records: [EndedRequest], _ threads: Int, _ count: Int
  ) -> Double {
    let span = ContinuousClock().measure {
      DispatchQueue.concurrentPerform(iterations: threads) { thread in
        for number in 0..<count { way.count(records[number % records.count].entry, thread: thread) }
      }
    }
    return span / .nanoseconds(1) / Double(count)
  }

  private static func tenths(_ number: Double) -> String {
    let tenths = Int((number * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// To a width, on the right where it is negative.
  private static func padded(_ text: String, _ width: Int) -> String {
    let space = String(repeating: " ", count: max(0, abs(width) - text.count))
    return width < 0 ? text + space : space + text
  }
}
