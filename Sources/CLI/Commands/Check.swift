import ArgumentParser
import Idempotency
import Logging
import NIOCore
import NIOPosix
import Platform
import Proxy
import Settings
import Store
import Transport

struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
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

/// The examination of all backends that the settings name: a `GET /` of each, on the transport that `semel run` uses.
struct BackendExamination {
  private static let longestWait: Milliseconds = .seconds(5)
  private static let longestBody = 1 << 20

  private let upstreams: [UpstreamSettings]

  init(_ upstreams: some Sequence<UpstreamSettings>) {
    self.upstreams = upstreams.sorted { $0.name < $1.name }
  }

  /// Sends the requests, and returns what is wrong with the responses: a sentence each, sorted by upstream.
  func findings() async throws -> [String] {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let context = EventLoopContext(loop: group.next())
    let transport = HTTPUpstream(context: context, loops: 1, logger: Logger.silent)
    let findings = await withTaskGroup(of: (String, String?).self) { tasks in
      for upstream in upstreams {
        tasks.addTask {
          await context.run { (upstream.name, await Self.finding(about: upstream, on: transport)) }
        }
      }
      return await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    await context.run { transport.shutdown() }
    try await group.shutdownGracefully()
    return upstreams.compactMap { upstream in
      findings[upstream.name].map { "upstreams.\(upstream.name): \($0)" }
    }
  }

  /// The fault of one backend's response; `nil` if such a response is kept. Runs on the transport's loop.
  private static func finding(about upstream: UpstreamSettings, on transport: HTTPUpstream) async -> String? {
    let exchange = transport.begin(request(to: upstream))
    defer { exchange.close() }
    let span = min(upstream.responseTimeout, longestWait)
    var hasBegun = false
    do throws(UpstreamFailure) {
      let head = try await exchange.head(within: span)
      guard !head.isDelimitedByClose else {
        return """
          only the connection's end marks the end of the response to GET /: a response of this form can be cut short \
          without a sign, and is not kept; let the backend send Content-Length, or chunks
          """
      }
      hasBegun = true
      _ = try await exchange.collect(upTo: longestBody, within: span)
      return nil
    } catch {
      // A body that goes on, such as a stream of events, is no fault.
      if hasBegun, error == .timedOut { return nil }
      return text(of: error, within: span)
    }
  }

  private static func request(to upstream: UpstreamSettings) -> UpstreamRequest {
    let fields = "Host: \(upstream.hostField(for: nil))\r\nUser-Agent: semel-check\r\nAccept: */*\r\n"
    return UpstreamRequest(
      upstream: upstream, method: "GET", target: "/", fields: ByteBuffer(string: fields), body: .none,
      permit: nil)
  }

  private static func text(of failure: UpstreamFailure, within span: Milliseconds) -> String {
    switch failure {
    case .malformed(let status, let rule):
      """
      the response to GET / breaks a rule of HTTP and cannot be read behind its status \(status), so that a response of \
      this form is not kept: \(rule)
      """
    case .notSent(let reason), .busy(let reason), .headTooLarge(let reason):
      "the backend cannot be reached: \(reason)"
    case .responseLost(let reason), .requestBody(let reason):
      "the response to GET / was lost: \(reason)"
    case .timedOut: "the backend does not respond to GET / within \(span.count) ms"
    }
  }
}

extension Logger {
  fileprivate static var silent: Logger { Logger(label: "semel") { _ in SwiftLogNoOpLogHandler() } }
}
