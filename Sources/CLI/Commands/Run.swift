import ArgumentParser
import Settings

/// `semel run --config FILE`: the proxy.
struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the proxy.",
    discussion: """
      SIGTERM ends it in order: it stops being ready, finishes and records what is in flight, and marks as unknown \
      what it cannot finish within shutdown_grace.
      """)

  @Option(help: "The configuration file.")
  var config: String

  func run() async throws {
    try await Assembly(settings: try ConfigurationFile.load(config)).run()
  }
}
