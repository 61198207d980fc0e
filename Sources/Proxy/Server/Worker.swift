import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

/// All of the proxy on one event loop: its store, its way to the backends, its connections and exchanges.
/// Confined to its loop, hence `@unchecked Sendable`.
public final class Worker<Store: RecordStore, Backend: Upstream>: @unchecked Sendable {
  public let context: EventLoopContext
  let store: Store
  let backend: Backend
  let environment: ProxyEnvironment
  let metrics: LoopMetrics
  let bodies: BodyReader
  /// The clients' side.
  let downstream: Downstream
  /// The records owned here, so that a shutdown can end those that it cannot finish.
  private var owned = Roster<OwnedRecord<Store, Backend>>()
  /// The pauses before retries on clients' behalf, which a shutdown ends.
  var pauses = Roster<Signal>()
  /// The claims that are being given back. A shutdown waits for them, or their keys stay blocked for a lease.
  var unusedClaims = Roster<(claim: Claim, release: Release)>()
  private(set) var isStopping = false
  /// The longest time for which a process that ends waits for its store, in milliseconds: several times what one
  /// command may take by default.
  private static var abandonSpan: Int64 { 3000 }
  private var entropy = Entropy()
  private var names = Entropy(count: 16)
  private var knownDigests: ShortDigests?

  public init(
    context: EventLoopContext, store: Store, backend: Backend, environment: ProxyEnvironment,
    configuration: ConfigurationSnapshot, metrics: LoopMetrics
  ) {
    self.context = context
    self.store = store
    self.backend = backend
    self.environment = environment
    self.metrics = metrics
    bodies = BodyReader(threads: environment.bodyThreads, loop: context.loop)
    downstream = Downstream(
      context: context, environment: environment, configuration: configuration, metrics: metrics)
    LagProbe.start(on: context.loop, metrics: metrics)
    // The two refer to each other, so that the worker lives as long as the connections whose deliveries it runs.
    downstream.start = { [self] in RequestRunner(worker: self, delivery: $0).start() }
  }

  /// Closes idle connections and ends the pauses before retries, none of which follows any more.
  func drain() {
    downstream.drain()
    for pause in pauses.values { pause.set() }
  }

  /// A name for a new owner. It is no older than a turn of the loop, in which its claim is written: two clones of a
  /// running machine would hand out the same names, had they been fetched long before.
  func newOwner() -> OwnerToken {
    let (high, low) = names.fresh(now: BootInstant.now.nanoseconds)
    return OwnerToken(high: high, low: low)
  }

  /// The short digests by the secret of all nodes; `nil` until that is known, after which it stays the same.
  func digestsOfAllNodes() -> ShortDigests? {
    if knownDigests == nil { knownDigests = environment.digests.ofAllNodes }
    return knownDigests
  }

  /// A random identifier of a span, or half of a trace's. Zero is not a valid one (W3C Trace Context).
  func newSpanID() -> UInt64 { max(entropy.next(), 1) }

  /// Owns the record of a granted claim, whose lease is kept from here on until the record has its end.
  ///
  /// - Parameter firstRenewal: The time to the lease's first renewal; `nil` for a third of it.
  func own(
    _ claim: Claim, of call: KeyedCall, for delivery: Delivery, firstRenewal: Milliseconds? = nil
  ) -> OwnedRecord<Store, Backend> {
    let record = OwnedRecord(claim, of: call, for: delivery, on: self, firstRenewal: firstRenewal)
    // Nothing asks for what is known of a shadowed request's record.
    if record.isEnforced, knowsRecords(of: call.route, claim.id, for: delivery) {
      record.enter(environment.known)
    }
    return record
  }

  /// Enters a record that is owned from now on; returns its number.
  func enter(_ record: OwnedRecord<Store, Backend>) -> Int { owned.enter(record) }

  /// Forgets an owned record, which has its end.
  func leave(_ number: Int) { owned.leave(number) }

  /// Whether what this process knows of the record counts: its route may run requests without the store, could when the
  /// record was noted, or may in a configuration that has followed the delivery's.
  func knowsRecords(of route: Route, _ id: RecordID, for delivery: Delivery) -> Bool {
    route.policy.onStoreFailure == .open || environment.known.counts(id)
      || delivery.configuration !== downstream.configuration
  }

  /// Notes all runs in progress, before a configuration opens routes that were closed to requests without the store.
  func noteRuns() {
    for record in owned.values where record.isEnforced { record.enter(environment.known) }
  }

  /// Renews the leases of all claims that are held at once.
  func renewLeases() {
    for record in owned.values { record.renewNow() }
  }

  /// Whether no claim is held any more or is being given back, each outcome is stored, and each client has taken its
  /// response.
  public var isIdle: Bool {
    owned.isEmpty && unusedClaims.isEmpty && !downstream.hasUnread
  }

  /// Ends the requests that the process cannot finish: refuses each owner's client with `outcome_unknown`, logs each
  /// request that is cut, and marks the record of each held claim unknown. What was never sent is refused with
  /// `overloaded`, and its claim given back. A response that has begun is cut by a reset: its client must not take it
  /// for a whole one when the process closes the connection.
  public func abandon() async {
    isStopping = true
    let records = Array(owned.values)
    for record in records { record.cut() }
    cut(records.map(\.delivery) + openDeliveries.filter { $0.responseState == .begun })
    await endAll(records, Array(unusedClaims.values))
    await waitForDuplicates()
    cut(openDeliveries)
    for connection in downstream.connections.values { connection.resetUnread() }
  }

  /// Waits until the duplicates that the ends of their records have woken are refused, and what they were granted is
  /// given back: for a claim each, and a quarter of a second at most.
  private func waitForDuplicates() async {
    for _ in 0..<25 {
      let isAwaited = openDeliveries.contains { $0.recordID != nil && $0.responseState == .none }
      guard isAwaited || !unusedClaims.isEmpty else { return }
      await context.sleep(milliseconds: 10)
    }
  }

  private var openDeliveries: [Delivery] { downstream.connections.values.flatMap(\.deliveries) }

  private func cut(_ deliveries: [Delivery]) {
    for delivery in deliveries {
      RequestRunner(worker: self, delivery: delivery).logCut()
      if delivery.responseState == .begun { delivery.abort() }
    }
  }

  /// Ends all these claims at once: a store that does not reply must not delay the end for each of them.
  private func endAll(
    _ records: [OwnedRecord<Store, Backend>], _ unused: [(claim: Claim, release: Release)]
  ) async {
    let ends = Countdown(records.count + unused.count, timers: context.timers)
    for (claim, release) in unused {
      context.task { [self] in
        await giveBackOnce(claim, release)
        ends.countDown()
      }
    }
    for record in records { record.endWithProcess(ends.countDown) }
    await ends.zero(within: Self.abandonSpan)
  }
}

/// A number of tasks that one other task waits for. Confined to its loop.
final class Countdown: @unchecked Sendable {
  private var left: Int
  private let timers: LoopTimers
  private let isOver: Signal

  init(_ count: Int, timers: LoopTimers) {
    left = count
    self.timers = timers
    isOver = Signal(timers: timers)
  }

  /// Notes the end of one task.
  func countDown() {
    timers.assertOnLoop()
    invariant(left > 0, "more tasks end than were begun")
    left -= 1
    if left == 0 { isOver.set() }
  }

  /// Waits until all tasks have ended, for at most `milliseconds`.
  func zero(within milliseconds: Int64) async {
    timers.assertOnLoop()
    guard left > 0 else { return }
    _ = await isOver.wait(milliseconds: milliseconds)
  }
}

/// Measures ten times a second how late an event loop runs an empty task: the delay that a busy or blocked
/// loop adds to every request.
enum LagProbe {
  private static let interval = TimeAmount.milliseconds(100)

  /// Starts the measurement, which lasts as long as the loop. Safe from any thread.
  static func start(on loop: any EventLoop, metrics: LoopMetrics) {
    schedule(on: loop, at: .now() + interval, metrics)
  }

  private static func schedule(on loop: any EventLoop, at due: NIODeadline, _ metrics: LoopMetrics) {
    _ = loop.scheduleTask(deadline: due) {
      let now = NIODeadline.now()
      metrics.lagged(microseconds: (now - due).nanoseconds / 1000)
      schedule(on: loop, at: now + interval, metrics)
    }
  }
}
