import ArgumentParser
import CSwiftRuntime
import Settings
import UnixSignals

struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the proxy.",
    discussion: """
      SIGTERM ends it in order: it stops being ready, finishes and records what is in flight, and marks as unknown \
      what it cannot finish within shutdown_grace. SIGHUP reads the configuration again, and puts it to work without \
      dropping a connection, or refuses it whole and says why.
      """)

  @Argument(help: "The configuration file.")
  var file: String?

  @Option(help: "The configuration file, as an option.")
  var config: String?

  func validate() throws {
    try require((file == nil) != (config == nil), "give one configuration file: semel run FILE")
  }

  func run() async throws {
    guard let path = file ?? config else { preconditionFailure("Run: not validated") }
    #if !DEBUG
      // Semel's own modules are compiled so. NIO and Crypto would spend a thirtieth of a replay's instructions on it.
      semel_disableExclusivityChecking()
    #endif
    // The signal ends a process that does not trap it, and the start may take as long as the store does.
    let reloads = await UnixSignalsSequence(trapping: .sighup)
    let file = try ConfigurationFile.load(path)
    try await Assembly(settings: file.settings, reloading: file, on: reloads).run()
  }
}
