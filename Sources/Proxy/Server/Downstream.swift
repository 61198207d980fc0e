import Loop
import NIOCore
import Telemetry

/// A client's connection as its event loop sees it, whatever it speaks.
protocol DownstreamConnection: AnyObject {
  /// The requests under way on it.
  var deliveries: [Delivery] { get }
  /// Ends it in order: at once where nothing is under way, else after the answers that are due.
  func drain()
  /// Holds what begins on it from now on against other limits.
  func adopt(_ limits: ProxyLimits)
}

extension DownstreamConnection {
  var deliveries: [Delivery] { [] }

  /// Most ask for the limits whenever they need them.
  func adopt(_ limits: ProxyLimits) {}
}

/// The clients' side of one event loop: their connections, and by which configuration they are met.
///
/// It knows neither store nor backend: what is called by NIO cannot be specialised for them, what it starts can.
final class Downstream: @unchecked Sendable {
  let context: EventLoopContext
  let environment: ProxyEnvironment
  let metrics: LoopMetrics
  /// By what deliveries that begin now are run.
  private(set) var generation: Generation
  let sharedBodies: SharedBodies
  var connections: [ObjectIdentifier: any DownstreamConnection] = [:]
  /// Runs one delivery to its end, which may outlive the client's connection.
  var start: (Delivery) -> Void = { _ in preconditionFailure("Downstream: nobody runs its deliveries") }

  init(
    context: EventLoopContext, environment: ProxyEnvironment, generation: Generation, metrics: LoopMetrics
  ) {
    self.context = context
    self.environment = environment
    self.generation = generation
    self.metrics = metrics
    sharedBodies = SharedBodies(counters: environment.counters)
  }

  /// The bounds that hold for what begins now.
  var limits: ProxyLimits { generation.limits }

  /// Runs what begins from now on by another configuration; what is under way ends by its own.
  func adopt(_ generation: Generation) {
    context.loop.assertInEventLoop()
    self.generation = generation
    for connection in connections.values { connection.adopt(generation.limits) }
  }

  /// Closes the connections on which nothing is under way. The others close after their answers.
  func drain() {
    context.loop.assertInEventLoop()
    for connection in connections.values { connection.drain() }
  }
}
