import Idempotency
import Logging
import Loop
import NIOCore
import Telemetry

/// All of the proxy on one event loop: its store, its way to the backends, its connections and exchanges.
public final class Worker<Store: RecordStore, Backend: Upstream>: @unchecked Sendable {
  public let context: EventLoopContext
  let store: Store
  let backend: Backend
  let environment: ProxyEnvironment
  let metrics: LoopMetrics
  let bodies: BodyReader
  /// The clients' side.
  let downstream: Downstream
  /// The claims held here, so that a shutdown can say `unknown` for what it cannot finish.
  private var held: [ObjectIdentifier: HeldClaim<Store>] = [:]
  private(set) var isStopping = false
  private var tokens = TokenSource()

  public init(
    context: EventLoopContext, store: Store, backend: Backend, environment: ProxyEnvironment,
    generation: Generation, metrics: LoopMetrics
  ) {
    self.context = context
    self.store = store
    self.backend = backend
    self.environment = environment
    self.metrics = metrics
    bodies = BodyReader(threads: environment.bodyThreads)
    downstream = Downstream(
      context: context, environment: environment, generation: generation, metrics: metrics)
    LagProbe.start(on: context.loop, metrics: metrics)
    // The two hold each other: as long as a connection lives, so does what runs its deliveries.
    downstream.start = { [self] in RequestRunner(worker: self, delivery: $0).start() }
  }

  /// A name for a new owner.
  func newOwner() -> OwnerToken { tokens.next() }

  func hold(_ claim: Claim, for delivery: Delivery, by route: Route) -> HeldClaim<Store> {
    let claim = HeldClaim(
      claim, for: delivery, store: store, known: route.mayRunUnprotected ? environment.known : nil,
      context: context, metrics: metrics)
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

  /// Whether no claim is held any more.
  public var isIdle: Bool { held.isEmpty }

  /// Ends what is under way with the process: each request that is cut is logged, and of each claim that is held the
  /// store is told that its outcome is unknown.
  public func abandon() async {
    isStopping = true
    let claims = Array(held.values)
    for delivery in claims.map(\.delivery) + downstream.connections.values.flatMap(\.deliveries) {
      RequestRunner(worker: self, delivery: delivery).logCut()
    }
    for claim in claims {
      claim.stopRenewing()
      await markUnknown(claim)
    }
  }

  private func markUnknown(_ held: HeldClaim<Store>) async {
    let place: Logger.Metadata = [
      "record": "\(held.claim.id.text)", "route": "\(held.delivery.record.route ?? "")",
      "attempt": "\(held.claim.attempt)",
    ]
    do {
      _ = try await store.markUnknown(held.claim)
      environment.logger.warning("a record is marked unknown, since this process ends", metadata: place)
    } catch {
      environment.logger.error(
        "a record could not be marked unknown at shutdown; its lease will lapse to the same end",
        metadata: place.merging(["error": "\(error)"]) { _, new in new })
    }
  }
}
