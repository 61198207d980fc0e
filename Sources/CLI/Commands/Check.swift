import ArgumentParser
import Settings

/// `semel check FILE`: checks a configuration file and prints all its errors.
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
    let routes = Self.count(settings.routes.count, "route")
    print("\(file): good: \(routes), \(Self.count(settings.upstreams.count, "upstream"))")
  }

  /// A number with its noun.
  private static func count(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }
}
