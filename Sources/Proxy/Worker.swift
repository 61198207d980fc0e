import Idempotency
import Logging
import Loop
import NIOCore
import Telemetry

/// A client's connection as its worker sees it, whatever it speaks.
protocol WorkerConnection: AnyObject {
  /// Ends it in order: at once where nothing is under way, else after the answers that are due.
  func drain()
  /// Holds what begins on it from now on against other limits.
  func adopt(_ limits: ProxyLimits)
}

extension WorkerConnection {
  /// Most ask for the limits whenever they need them.
  func adopt(_ limits: ProxyLimits) {}
}

/// All of the proxy on one event loop: its store, its way to the backends, its connections and exchanges.
package final class Worker<Store: RecordStore, Backend: Upstream>: @unchecked Sendable {
  package let context: EventLoopContext
  let store: Store
  let backend: Backend
  let environment: ProxyEnvironment
  let metrics: LoopMetrics
  /// By what deliveries that begin now are run.
  private(set) var generation: Generation
  var connections: [ObjectIdentifier: any WorkerConnection] = [:]
  /// The claims held here, so that a shutdown can say `unknown` for what it cannot finish.
  private var held: [ObjectIdentifier: HeldClaim<Store>] = [:]
  private(set) var isStopping = false
  private var tokens = TokenSource()

  package init(
    context: EventLoopContext, store: Store, backend: Backend, environment: ProxyEnvironment,
    generation: Generation, metrics: LoopMetrics
  ) {
    self.context = context
    self.store = store
    self.backend = backend
    self.environment = environment
    self.generation = generation
    self.metrics = metrics
    LagProbe.start(on: context.loop, metrics: metrics)
  }

  /// Runs what begins from now on by another configuration; what is under way ends by its own.
  func adopt(_ generation: Generation) {
    context.loop.assertInEventLoop()
    self.generation = generation
    for connection in connections.values { connection.adopt(generation.limits) }
  }

  /// The bounds that hold for what begins now.
  var limits: ProxyLimits { generation.limits }

  /// Runs one delivery to its end, which may outlive the client's connection.
  func start(_ delivery: Delivery) {
    RequestRunner(worker: self, delivery: delivery).start()
  }

  /// A name for a new owner.
  func newOwner() -> OwnerToken { tokens.next() }

  func hold(_ claim: Claim) -> HeldClaim<Store> {
    let claim = HeldClaim(claim, store: store, context: context, metrics: metrics)
    held[ObjectIdentifier(claim)] = claim
    return claim
  }

  func end(_ claim: HeldClaim<Store>) {
    claim.stopRenewing()
    held[ObjectIdentifier(claim)] = nil
  }

  /// Waits until the store runs no other copy of the claim any more. There mostly is none.
  func outlastCopies(of claim: Claim) async {
    let left = claim.copiedUntil - BootInstant(nanoseconds: bootTimeNanoseconds())
    if left > 0 { await context.sleep(milliseconds: left.count + 1) }
  }

  /// Closes the connections on which nothing is under way. The others close after their answers.
  package func drain() {
    context.loop.assertInEventLoop()
    for connection in connections.values { connection.drain() }
  }

  /// Whether no claim is held any more.
  package var isIdle: Bool { held.isEmpty }

  /// Says of every claim still held that its outcome is unknown, since this process goes away.
  package func abandon() async {
    isStopping = true
    for claim in Array(held.values) {
      claim.stopRenewing()
      do {
        _ = try await store.markUnknown(claim.claim)
      } catch {
        environment.logger.error(
          "a record could not be marked unknown at shutdown; its lease will lapse to the same end",
          metadata: ["error": "\(error)"])
      }
    }
  }
}
