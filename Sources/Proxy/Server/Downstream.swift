import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

/// A client's connection as its event loop sees it, whatever its protocol.
protocol DownstreamConnection: AnyObject {
  /// The requests under way on it.
  var deliveries: [Delivery] { get }
  /// Whether the client has not taken all that was written.
  var hasUnread: Bool { get }
  /// Ends the connection in order: at once if nothing is under way, else after the responses that are due.
  func drain()
  /// Resets the connection if the client has not taken all of a response: it must not take that for whole when the
  /// process ends.
  func resetUnread()
  /// Applies other limits to requests that begin from now on.
  func adopt(_ limits: LimitSettings)
  /// The time since which it has been without a request and an unread response; `nil` if it is not.
  var restingSince: NIODeadline? { get }
  /// The client; `nil` before it is known.
  var client: MemoryHolder? { get }
  /// Closes the connection in order if it rests and nothing has arrived; false if not.
  func closeResting() -> Bool
}

extension DownstreamConnection {
  var deliveries: [Delivery] { [] }

  var hasUnread: Bool { false }

  var restingSince: NIODeadline? { nil }

  var client: MemoryHolder? { nil }

  func closeResting() -> Bool { false }

  /// Does nothing: the frames of HTTP/2 show that a response is cut.
  func resetUnread() {}

  /// Does nothing: most connections read the limits whenever they need them.
  func adopt(_ limits: LimitSettings) {}
}

/// The clients' side of one event loop: its connections and the current configuration. Confined to the loop, hence
/// `@unchecked Sendable`.
///
/// It knows neither store nor backend: code that NIO calls cannot be specialised for them, code that it starts can.
final class Downstream: @unchecked Sendable {
  let context: EventLoopContext
  let environment: ProxyEnvironment
  let metrics: LoopMetrics
  /// The configuration of deliveries that begin now.
  private(set) var configuration: ConfigurationSnapshot
  let sharedBodies: SharedBodies
  /// The small writes of one turn to the clients that take HTTP/1.1 without TLS.
  let writes: WriteBatch
  var connections = Roster<any DownstreamConnection>()
  private var resting = RestingConnections()
  /// The memory in which the loop's entries of the access log are formatted, one after another.
  private var logLine = LogLine(format: .json)
  /// Runs one delivery to its end, which may outlive the client's connection.
  var start: (Delivery) -> Void = { _ in
    invariantBroken("a delivery before its runner was set")
  }

  init(
    context: EventLoopContext, environment: ProxyEnvironment, configuration: ConfigurationSnapshot,
    metrics: LoopMetrics
  ) {
    self.context = context
    self.environment = environment
    self.configuration = configuration
    self.metrics = metrics
    sharedBodies = SharedBodies(counters: environment.counters)
    writes = WriteBatch(loop: context.loop)
  }

  /// The limits of requests that begin now.
  var limits: LimitSettings { configuration.limits }

  /// Counts and logs a request that is refused because its head cannot be read.
  func noteUnread(_ problem: Problem, from peer: ClientPeer) {
    let reason = RefusalReason(problem.code)
    metrics.refusedUnread(reason)
    guard configuration.accessLog.isEnabled else { return }
    var entry = AccessLogEntry()
    entry.client = peer.loggedAddress
    entry.status = problem.status
    entry.outcome = .refused
    entry.refusal = reason
    write(entry, to: configuration.accessLog)
  }

  /// Writes an entry of the access log, and in a second the number of those that it leaves out.
  func write(_ entry: borrowing AccessLogEntry, to log: AccessLog) {
    guard log.write(entry, now: NIODeadline.now().uptimeNanoseconds, in: &logLine) else { return }
    _ = context.timers.start(milliseconds: 1000) { log.writeLeftOut() }
  }

  /// Replaces the configuration. Deliveries under way keep theirs.
  func adopt(_ configuration: ConfigurationSnapshot) {
    context.loop.assertInEventLoop()
    self.configuration = configuration
    for connection in connections.values { connection.adopt(configuration.limits) }
  }

  /// Closes the connection that has rested longest, of the client that has most; false if none rests.
  func closeResting() -> Bool {
    context.loop.assertInEventLoop()
    if resting.isSearchDue(at: .now()) {
      resting.search(
        connections.entries.map { .init(id: $0, client: $1.client, restingSince: $1.restingSince) },
        at: .now())
    }
    while let next = resting.next() {
      guard let connection = connections[next.id], connection.restingSince == next.restingSince else {
        continue
      }
      if connection.closeResting() { return true }
    }
    return false
  }

  /// Whether a client has not taken all of a response yet.
  var hasUnread: Bool { connections.values.contains { $0.hasUnread } }

  /// Closes the connections on which nothing is under way. The others close after their responses.
  func drain() {
    context.loop.assertInEventLoop()
    for connection in connections.values { connection.drain() }
  }
}

extension LimitSettings {
  /// The limits on a request's head.
  public var head: HeadLimits {
    HeadLimits(
      headBytes: headerBytes, maxFields: ConnectionLimits.headerFields,
      lineBytes: ConnectionLimits.headerLineBytes)
  }
}
