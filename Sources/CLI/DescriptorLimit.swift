import Glibc
import Idempotency
import ServiceLifecycle
import Settings
import Synchronization

/// The limit of files and sockets that this process may have open.
enum DescriptorLimit {
  /// The descriptors besides connections of clients and backends: 64 of admin clients, listeners, the store, the log.
  private static let spare = 192
  private static let sparePerLoop = 8

  /// Raises the soft limit to the hard one (`ulimit -Hn`): the usual 1024 is for programs that use select. Returns it.
  @discardableResult
  static func raise() -> Int {
    var limit = current()
    if limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    return Int(clamping: current().rlim_cur)
  }

  private static func current() -> rlimit {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return limit
  }

  private static let minimum = 64

  struct Fault: Error, CustomStringConvertible { let description: String }

  static func require(_ limit: Int) throws(Fault) {
    guard limit < minimum else { return }
    throw Fault(
      description: "\(limit) open files are allowed, and \(minimum) are needed to start: "
        + "raise the hard limit (ulimit -Hn, LimitNOFILE)")
  }

  /// The number of clients' connections for which the process may open enough files, beside those to backends and what
  /// else it opens: what the settings allow, or less. Half of a limit that is too low for any of them is for clients.
  static func maxConnections(of settings: Settings, loops: Int, limit: Int) -> Int {
    let others = connectionsToBackends(of: settings) + spare + sparePerLoop * loops
    return min(settings.limits.maxConnections, max(limit - others, limit / 2))
  }

  static func warning(of settings: Settings, loops: Int, limit: Int) -> String? {
    let clients = maxConnections(of: settings, loops: loops, limit: limit)
    guard clients < settings.limits.maxConnections else { return nil }
    return "limits.max_connections does not fit into the limit of open files: "
      + "\(settings.limits.maxConnections) clients and \(connectionsToBackends(of: settings)) connections to backends "
      + "do not fit into \(limit), so that \(clients) clients are let in; raise the hard limit (ulimit -Hn, LimitNOFILE), "
      + "or lower max_connections"
  }

  private static func connectionsToBackends(of settings: Settings) -> Int {
    settings.upstreams.values.map(\.maxConnections).reduce(0, +)
  }
}

/// The secret of the digests in log and records, on which the nodes of a namespace agree through the store.
final class LogSecret: Sendable {
  private let facts: any NamespaceFacts
  private let digests: LogDigests
  private let secret = Mutex(LogDigests.randomSecret())

  init(facts: any NamespaceFacts, digests: LogDigests) {
    self.facts = facts
    self.digests = digests
  }

  var isShared: Bool { digests.isShared }

  /// Gives the store the secret if it has none, and takes the store's. Called before the first claim.
  func agree() async throws(StoreError) {
    let own = secret.withLock { $0 }
    let shared = Secret(try await facts.establish(.logSecret, as: own.revealed))
    guard !digests.isShared else { return }
    secret.withLock { $0 = shared }
    digests.share(shared)
  }
}

/// Agrees on the secret periodically: a store that came back empty gets it again from the nodes that have it.
struct LogSecretService: Service {
  private static let pause = Duration.seconds(60)
  private static let pauseWithoutStore = Duration.seconds(1)

  let secret: LogSecret

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        try? await secret.agree()
        try? await Task.sleep(for: secret.isShared ? Self.pause : Self.pauseWithoutStore)
      }
    }
  }
}
