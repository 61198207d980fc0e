import Idempotency
import Logging
import Loop
import NIOCore
import Telemetry

/// All of the proxy on one event loop: its store, its way to the backends, its connections and exchanges.
package final class Worker<Store: RecordStore, Backend: Upstream>: @unchecked Sendable {
  package let context: EventLoopContext
  let store: Store
  let backend: Backend
  let environment: ProxyEnvironment
  var connections: [ObjectIdentifier: ClientConnection<Store, Backend>] = [:]
  /// The claims held here, so that a shutdown can say `unknown` for what it cannot finish.
  private var held: [ObjectIdentifier: HeldClaim<Store>] = [:]
  private(set) var isStopping = false
  private var tokens = TokenSource()

  package init(context: EventLoopContext, store: Store, backend: Backend, environment: ProxyEnvironment) {
    self.context = context
    self.store = store
    self.backend = backend
    self.environment = environment
  }

  /// Runs one delivery to its end, which may outlive the client's connection.
  func start(_ delivery: Delivery) {
    environment.counters.add(.requests)
    RequestRunner(worker: self, delivery: delivery).start()
  }

  /// A name for a new owner.
  func newOwner() -> OwnerToken { tokens.next() }

  func hold(_ claim: Claim) -> HeldClaim<Store> {
    let claim = HeldClaim(claim, store: store, context: context, counters: environment.counters)
    held[ObjectIdentifier(claim)] = claim
    return claim
  }

  func end(_ claim: HeldClaim<Store>) {
    claim.stopRenewing()
    held[ObjectIdentifier(claim)] = nil
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
