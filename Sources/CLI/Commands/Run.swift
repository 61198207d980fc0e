import ArgumentParser
import Settings

/// `semel run --config FILE`: runs the proxy.
struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the proxy.",
    discussion: """
      SIGTERM ends it in order: it stops being ready, finishes and records what is in flight, and marks as unknown \
      what it cannot finish within shutdown_grace. SIGHUP reads the configuration again, and puts it to work without \
      dropping a connection, or refuses it whole and says why.
      """)

  @Option(help: "The configuration file.")
  var config: String

  func run() async throws {
    let file = try ConfigurationFile.load(config)
    try await Assembly(settings: file.settings, file: file).run()
  }
}
