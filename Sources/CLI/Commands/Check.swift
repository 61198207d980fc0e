import ArgumentParser
import Settings

/// `semel check FILE`: says whether a configuration is good, and all that is wrong with it.
struct Check: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check a configuration file.",
    discussion: "Prints every error with file, line, column and member, and exits with 78 where there is one."
  )

  @Argument(help: "The configuration file.")
  var file: String

  func run() throws {
    let settings = try ConfigurationFile.load(file).settings
    for warning in settings.warnings { StandardError.print("warning: \(warning)") }
    print("\(file): good: \(settings.routes.count) routes, \(settings.upstreams.count) upstreams")
  }
}
