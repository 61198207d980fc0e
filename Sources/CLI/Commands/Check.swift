import ArgumentParser
import Platform
import Settings
import Store

/// `semel check FILE`: checks a configuration file and prints all its errors; with `--live`, those of its Redis, too.
struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check a configuration file.",
    discussion: """
      Prints every error with file, line, column and member, and exits with 78 where there is one. With --live it also \
      connects to the store's Redis and prints everything that is wrong there: what cannot be reached, missing rights, \
      durability, topology, clock. It exits with 1 where protected requests would fail.
      """
  )

  @Flag(help: "Connect to the store's Redis, and examine it.")
  var live = false

  @Argument(help: "The configuration file.")
  var file: String

  func run() async throws {
    let settings = try ConfigurationFile.load(file).settings
    for warning in settings.warnings { StandardError.print("warning: \(warning)") }
    // A warning, since the file may be meant for another machine.
    if let fault = Self.fault(of: settings.store) { StandardError.print("warning: \(fault)") }
    if live { try await examine(settings.store) }
    let routes = Self.count(settings.routes.count, "route")
    print("\(file): good: \(routes), \(Self.count(settings.upstreams.count, "upstream"))")
  }

  /// The reason for which the embedded store would not be opened here.
  private static func fault(of store: StoreSettings) -> EmbeddedStoreError? {
    guard case .embedded(let path) = store.place else { return nil }
    return EmbeddedStoreError.foreseen(at: path)
  }

  private func examine(_ store: StoreSettings) async throws {
    guard case .redis(let redis) = store.place else {
      return print("store: an embedded one, of which --live examines nothing")
    }
    let settings = try RedisEndpointSettings(redis, in: store)
    let findings = await RedisExamination(settings, now: { Int64(WallClock.seconds()) }).findings()
    for finding in findings {
      StandardError.print("\(finding.isError ? "" : "warning: ")store: \(finding.text)")
    }
    if findings.contains(where: \.isError) { throw ExitCode.failure }
    if findings.isEmpty { print("store: nothing is wrong with its servers") }
  }

  /// A number with its noun.
  private static func count(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }
}
