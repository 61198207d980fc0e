import Idempotency
import Logging
import NIOCore
import Platform
import Synchronization

/// The implementation of `Upstream` on NIO's channels: HTTP/1.1 with Semel's own codec, and HTTP/2, in clear, over TLS
/// and on Unix sockets. Confined to its event loop.
///
/// It knows for certain which bytes were written: no layer below it sends anything again.
public final class HTTPUpstream: Upstream, @unchecked Sendable {
  let context: EventLoopContext
  private let logger: Logger
  private let loops: Int
  private let faults: BackendFaults
  private let unreached: UnreachedBackends
  /// The requests for which no connection to their backend could be made, by upstream.
  private var connectFailures = LogPace<String>()
  let tls: BackendTLS
  private var pools: [ConnectionPool] = []
  /// The upstreams of the configuration by name; `nil` before the first reload.
  private var configured: [String: UpstreamSettings]?
  private var isShutDown = false
  /// The totals of this transport. Read them on its loop.
  public internal(set) var counters = UpstreamCounters()

  /// Creates the transport of one event loop.
  ///
  /// - Parameters:
  ///   - context: The event loop that the transport is confined to. Call `begin` and `shutdown` on it.
  ///   - loops: The number of event loops. Each gets its share of an upstream's `maxConnections`.
  ///   - logger: The logger of backends that cannot be reached, of repeated attempts to connect, and of faults.
  ///   - faults: The backends' faults, shared with the other loops.
  ///   - unreached: The backends that are not reached, shared with the other loops.
  ///   - tls: The TLS clients, shared with the other loops.
  public init(
    context: EventLoopContext, loops: Int, logger: Logger, faults: BackendFaults = BackendFaults(),
    unreached: UnreachedBackends = UnreachedBackends(), tls: BackendTLS = BackendTLS()
  ) {
    self.tls = tls
    self.faults = faults
    self.unreached = unreached
    self.context = context
    self.loops = loops
    self.logger = logger
  }

  public func begin(_ request: UpstreamRequest) -> HTTPExchange {
    context.loop.assertInEventLoop()
    let versions = HTTPVersions(for: request)
    let pool = pool(for: request.upstream, versions)
    let exchange = HTTPExchange(request, pool: pool, context: context)
    if isShutDown {
      exchange.fail("the transport is shut down")
    } else if versions == .http2, !request.fitsHTTP2 {
      exchange.fail(.headTooLarge("the request's head is too large for one frame of HTTP/2"))
    } else {
      exchange.pool.start(exchange)
    }
    return exchange
  }

  /// Starts an exchange anew over HTTP/1.1, because the backend takes no such head over HTTP/2.
  func startOverHTTP1(_ exchange: HTTPExchange) {
    exchange.start(in: pool(for: exchange.request.upstream, .http1))
  }

  /// Adopts the upstreams of a new configuration. The connections to others close, those in use after their exchange.
  public func adopt(_ upstreams: [String: UpstreamSettings]) {
    context.loop.assertInEventLoop()
    configured = upstreams
    for pool in pools { pool.setRetired(isRetired(pool.settings)) }
    removeRetired()
  }

  /// Cuts the exchanges in progress and closes every connection. Exchanges that begin later fail.
  public func shutdown() {
    context.loop.assertInEventLoop()
    isShutDown = true
    for pool in pools { pool.shutdown() }
    pools.removeAll()
  }

  /// Handles the end of a connection on which the backend sent bytes unasked.
  func didEndForStrayBytes(of name: String) {
    guard let count = faults.count(.strayBytes, of: name, at: .now()) else { return }
    logger.warning(
      """
      a backend sent bytes that no request asked for, and its connection was closed; look for a response longer than its \
      Content-Length, a body in response to HEAD or with 204 or 304, a second response to one request, or a message \
      about an idle connection
      """, metadata: ["upstream": "\(name)", "connections": "\(count)"])
  }

  /// Handles a response that breaks a rule of HTTP, so that no more than its head can be read.
  func didReceiveMalformed(from name: String, because rule: String) {
    guard let count = faults.count(.malformedResponse, of: name, at: .now()) else { return }
    logger.warning(
      """
      a backend's response breaks a rule of HTTP and cannot be read behind its status, so that it is not kept; the next \
      line about such responses comes in a minute at the earliest
      """, metadata: ["upstream": "\(name)", "rule": "\(rule)", "responses": "\(count)"])
  }

  /// Handles a request for which the last attempt to connect has failed.
  func didFailToConnect(to name: String, because reason: String) {
    unreached.failed(name, because: reason)
    guard let count = connectFailures.count(name, at: .now()) else { return }
    logger.warning(
      "a backend cannot be reached; the next line about it comes in a minute at the earliest",
      metadata: ["upstream": "\(name)", "reason": "\(reason)", "requests": "\(count)"])
  }

  /// Handles a connection that was established for requests.
  func didConnect(to name: String) { unreached.connected(name) }

  func logRetry(of name: String, after reason: String, in delay: Milliseconds) {
    counters.retries += 1
    logger.debug(
      "connecting is tried again",
      metadata: ["upstream": "\(name)", "reason": "\(reason)", "delay_ms": "\(delay.count)"])
  }

  private func pool(for settings: UpstreamSettings, _ versions: HTTPVersions) -> ConnectionPool {
    for pool in pools where pool.versions == versions && pool.settings == settings { return pool }
    removeRetired()
    let pool = ConnectionPool(settings: settings, versions: versions, loops: loops, upstream: self)
    // A request that began before a reload may send after it.
    pool.setRetired(isRetired(settings))
    pools.append(pool)
    return pool
  }

  /// Whether the configuration no longer has an upstream with these settings.
  private func isRetired(_ settings: UpstreamSettings) -> Bool {
    configured.map { $0[settings.name] != settings } ?? false
  }

  /// Forgets the retired pools on which nothing is under way. Others follow with the next new pool or reload.
  private func removeRetired() { pools.removeAll { $0.isRetired && $0.isIdle } }
}

/// The totals of one event loop's transport.
public struct UpstreamCounters: Sendable, Equatable {
  /// The number of connections begun, including those that failed.
  public var connects = 0
  /// The number of requests whose sending was begun.
  public var sends = 0
  /// The number of repeated attempts to connect.
  public var retries = 0
}

/// The faults of backends that Semel had to end a connection for, by upstream. Shared by all event loops.
public final class BackendFaults: Sendable {
  public enum Kind: Sendable {
    /// The backend sent bytes that no request asked for.
    case strayBytes
    /// The backend sent a response of which only the status, or the head, can be read.
    case malformedResponse
  }

  private struct Key: Hashable {
    let kind: Kind
    let upstream: String
  }

  private struct Counts {
    var faults: [Key: Int] = [:]
    var pace = LogPace<Key>()
  }

  private let counts: Mutex<Counts>

  /// - Parameter upstreams: The names of those that are counted from 0 on; others follow with their first fault.
  public init(upstreams: [String] = []) {
    var counts = Counts()
    for name in upstreams {
      for kind in [Kind.strayBytes, .malformedResponse] { counts.faults[Key(kind: kind, upstream: name)] = 0 }
    }
    self.counts = Mutex(counts)
  }

  /// The faults of one kind of each upstream, sorted by its name.
  public func counts(of kind: Kind) -> [(upstream: String, count: Int)] {
    counts.withLock { counts in
      counts.faults.filter { $0.key.kind == kind }.map { ($0.key.upstream, $0.value) }
    }.sorted { $0.0 < $1.0 }
  }

  /// Counts a fault.
  ///
  /// - Returns: The faults of its kind and upstream since the last log entry about them, this one included, where
  ///   another entry is due.
  func count(_ kind: Kind, of upstream: String, at now: NIODeadline) -> Int? {
    let key = Key(kind: kind, upstream: upstream)
    return counts.withLock { counts in
      counts.faults[key, default: 0] += 1
      return counts.pace.count(key, at: now)
    }
  }
}
