import Loop
import NIOCore
import Telemetry

/// A client's connection as its event loop sees it, whatever its protocol.
protocol DownstreamConnection: AnyObject {
  /// The requests under way on it.
  var deliveries: [Delivery] { get }
  /// Ends the connection in order: at once if nothing is under way, else after the responses that are due.
  func drain()
  /// Applies other limits to requests that begin from now on.
  func adopt(_ limits: ProxyLimits)
}

extension DownstreamConnection {
  var deliveries: [Delivery] { [] }

  /// Does nothing: most connections read the limits whenever they need them.
  func adopt(_ limits: ProxyLimits) {}
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
  private(set) var generation: Generation
  let sharedBodies: SharedBodies
  var connections: [ObjectIdentifier: any DownstreamConnection] = [:]
  /// Runs one delivery to its end, which may outlive the client's connection.
  var start: (Delivery) -> Void = { _ in
    preconditionFailure("Downstream: a delivery before its runner was set")
  }

  init(
    context: EventLoopContext, environment: ProxyEnvironment, generation: Generation, metrics: LoopMetrics
  ) {
    self.context = context
    self.environment = environment
    self.generation = generation
    self.metrics = metrics
    sharedBodies = SharedBodies(counters: environment.counters)
  }

  /// The limits of requests that begin now.
  var limits: ProxyLimits { generation.limits }

  /// Replaces the configuration. Deliveries under way keep theirs.
  func adopt(_ generation: Generation) {
    context.loop.assertInEventLoop()
    self.generation = generation
    for connection in connections.values { connection.adopt(generation.limits) }
  }

  /// Closes the connections on which nothing is under way. The others close after their responses.
  func drain() {
    context.loop.assertInEventLoop()
    for connection in connections.values { connection.drain() }
  }
}
