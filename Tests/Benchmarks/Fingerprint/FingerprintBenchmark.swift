import Idempotency
import NIOCore
import Wire

/// Prints the time that the fingerprint of a mebibyte takes, of each media type and of the costliest bodies of it, by each
/// recipe.
///
///     FingerprintBenchmark [ROUNDS]
@main
enum FingerprintBenchmark {
  private static let mebibyte = 1 << 20

  static func main() {
    let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 20
    let recipes = Recipe.Version.allCases.map { Recipe(version: $0) }
    print("milliseconds a MiB, the median of \(rounds) rounds, by recipe \(recipes.map(\.text))")
    for sample in Sample.all {
      let spans = recipes.map { recipe in
        let milliseconds = median(of: rounds) { _ = sample.fingerprint(recipe) }
        return text(milliseconds * Double(mebibyte) / Double(sample.size))
      }
      print(
        sample.name + String(repeating: " ", count: 44 - sample.name.count) + spans.joined(separator: "    "))
    }
    let query = Sample.encodedQuery(16 << 10)
    let small = Sample.small
    for recipe in recipes {
      let span = median(of: rounds * 10) { _ = query.fingerprint(recipe) }
      print("\(recipe.text): a query of 16 KiB, percent-encoded: \(text(span)) ms")
      let many = median(of: rounds) { for _ in 0..<10_000 { _ = small.fingerprint(recipe) } }
      print("\(recipe.text): a small JSON body with a query: \(text(many * 100)) ns")
    }
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
