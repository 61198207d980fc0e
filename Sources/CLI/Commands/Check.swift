import ArgumentParser
import Idempotency
import Platform
import Settings
import Store

struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check a configuration file.",
    discussion: """
      Prints every error with file, line, column and member, and exits with 78 where there is one. With --live it also \
      reads the store: it compares the configuration with those that the namespace remembers, as a start does, and \
      exits with 78 where a start would be refused. Of a Redis it prints everything that is wrong there: what cannot be \
      reached, missing rights, durability, topology, clock. It exits with 1 where protected requests would fail. It \
      also sends one GET / to each backend, and warns of one that cannot be reached, or whose response could not be \
      kept.
      """
  )

  @Flag(
    help: "Read the store, compare the configuration with its namespace, and send a GET / to each backend.")
  var live = false

  @Argument(help: "The configuration file.")
  var file: String

  func run() async throws {
    let settings = try ConfigurationFile.load(file).settings
    for warning in settings.warnings { StandardError.print("warning: \(warning)") }
    // A warning, since the file may be meant for another machine.
    if let fault = Self.fault(of: settings.store) { StandardError.print("warning: \(fault)") }
    if live {
      for finding in try await BackendExamination(settings.upstreams.values).findings() {
        StandardError.print("warning: \(finding)")
      }
      try await examine(settings.store)
      try await compare(settings)
    }
    let routes = counted(settings.routes.count, "route")
    print("\(file): good: \(routes), \(counted(settings.upstreams.count, "upstream"))")
  }

  private static func fault(of store: StoreSettings) -> EmbeddedStoreError? {
    guard case .embedded(let path) = store.place else { return nil }
    return EmbeddedStoreError.foreseen(at: path)
  }

  private func examine(_ store: StoreSettings) async throws {
    guard case .redis(let redis) = store.place else { return }
    let settings = try RedisEndpointSettings(redis, in: store)
    let findings = await RedisExamination(settings, now: { Int64(WallClock.seconds()) }).findings()
    for finding in findings {
      StandardError.print("\(finding.isError ? "" : "warning: ")store: \(finding.text)")
    }
    if findings.contains(where: \.isError) { throw ExitCode.failure }
    if findings.isEmpty { print("store: nothing is wrong with its servers") }
  }

  private func compare(_ settings: Settings) async throws {
    let found: NamespaceRegister.Judgement?
    do { found = try await NamespaceReading.judgement(of: settings) } catch {
      let reason = (error as? StoreError)?.text ?? "\(error)"
      StandardError.print("store: the namespace cannot be read, so that nothing is compared: \(reason)")
      throw ExitCode.failure
    }
    guard let judgement = found else { return }
    if case .redis = settings.store.place {
      for sentence in judgement.movedUpstreams {
        StandardError.print("warning: store.namespace: is used by another configuration: \(sentence)")
      }
    }
    guard let change = judgement.change else { return }
    let isAccepted = change.digest == settings.acceptedChange
    for reason in change.refusal {
      StandardError.print("\(isAccepted ? "warning: " : "")\(file): \(reason)")
    }
    guard isAccepted else {
      StandardError.print("\(file): \(IdentityRefusal.summary): semel run refuses to start")
      throw ExitCode.badConfiguration
    }
  }
}
