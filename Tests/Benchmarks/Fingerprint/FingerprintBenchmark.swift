import Idempotency
import NIOCore
import Wire

/// Prints the time that the fingerprint of a mebibyte takes, of each media type and of the costliest bodies of it.
///
///     FingerprintBenchmark [ROUNDS]
@main
enum FingerprintBenchmark {
  private static let mebibyte = 1 << 20

  static func main() {
    let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 20
    print("milliseconds a MiB, the median of \(rounds) rounds")
    for sample in Sample.all {
      let milliseconds = median(of: rounds) { _ = sample.fingerprint() }
      let perMebibyte = milliseconds * Double(mebibyte) / Double(sample.size)
      print(sample.name + String(repeating: " ", count: 44 - sample.name.count) + text(perMebibyte))
    }
    let query = Sample.encodedQuery(16 << 10)
    print(
      "a query of 16 KiB, percent-encoded: \(text(median(of: rounds * 10) { _ = query.fingerprint() })) ms")
    let small = Sample.small
    let span = median(of: rounds) { for _ in 0..<10_000 { _ = small.fingerprint() } }
    print("a small JSON body with a query: \(text(span * 100)) ns")
  }

  private static func median(of rounds: Int, _ body: () -> Void) -> Double {
    let spans = (0..<rounds).map { _ in ContinuousClock().measure(body) }.sorted()
    let median = spans[rounds / 2].components
    return Double(median.seconds) * 1e3 + Double(median.attoseconds) / 1e15
  }

  private static func text(_ number: Double) -> String {
    let hundredths = Int((number * 100).rounded())
    return "\(hundredths / 100)." + (hundredths % 100 < 10 ? "0" : "") + "\(hundredths % 100)"
  }
}
