import Idempotency
import Settings

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// How many files and sockets this process may have open.
enum DescriptorLimit {
  /// Besides connections: listeners, the store, the log, and a few for each event loop.
  private static let spare = 128
  private static let sparePerLoop = 8

  /// Raises what counts to the most that is allowed (`ulimit -Hn`), as a server has to: the usual 1024 is for
  /// programs that use select. Says what counts now.
  @discardableResult
  static func raise() -> Int {
    var limit = current()
    if limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      #if canImport(Glibc)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      #else
        setrlimit(RLIMIT_NOFILE, &limit)
      #endif
    }
    return Int(clamping: current().rlim_cur)
  }

  private static func current() -> rlimit {
    var limit = rlimit()
    #if canImport(Glibc)
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    #else
      getrlimit(RLIMIT_NOFILE, &limit)
    #endif
    return limit
  }

  /// Says where the settings allow more connections than the process may open.
  static func warning(of settings: Settings, loops: Int, limit: Int) -> String? {
    let upstreams = settings.upstreams.values.map(\.maxConnections).reduce(0, +)
    let wanted = settings.limits.maxConnections + upstreams + spare + sparePerLoop * loops
    guard wanted > limit else { return nil }
    return "limits.max_connections does not fit into the limit of open files: "
      + "\(settings.limits.maxConnections) clients and \(upstreams) connections to backends need \(wanted), and "
      + "\(limit) are allowed; raise the hard limit (ulimit -Hn, LimitNOFILE), or lower max_connections"
  }
}
