import Foundation
public import GRDB
public import Logging
public import SemelClient
import Synchronization

/// A durable queue of intents in the application's own database.
///
/// An intent is enqueued in the transaction of the change that it is about, is sent until it has its one end, and keeps
/// its key over retries, restarts and new credentials.
///
/// ```swift
/// let outbox = try await Outbox(database: writer, origin: origin, transport: .urlSession())
/// let intent = try await writer.write { db in
///   try order.insert(db)
///   return try outbox.enqueue(.post("/v1/orders", json: order), group: "order", once: "submit-\(cart.id)", in: db)
/// }
/// async let running: Void = outbox.run()          // on a server: as a `Service`
/// switch try await outbox.outcome(of: intent) { … }  // also after a restart
/// ```
///
/// Several processes may run one queue, such as an app and its extension: an intent is leased before it is sent. Give
/// the database a busy time-out (`Configuration.busyMode = .timeout(5)`), and open it with `PRAGMA synchronous = FULL`
/// if an intent must survive a loss of power.
public final class Outbox: Sendable {
  let database: any DatabaseWriter
  let store: QueueStore
  let courier: Courier
  let budgets: RetryBudgets
  let metrics: ClientMetrics
  let logger: Logger
  let settings: Settings
  let hub: ChangeHub
  let doorbell = Doorbell()
  /// The deliveries of `run` that are under way.
  let running = Mutex(0)

  /// The settings of a queue.
  public struct Settings: Sendable {
    /// The sizes that the queue accepts.
    public var limits = QueueLimits()
    /// The encryption of bodies; without one they are stored as they are.
    public var seal: (any BodySeal)?
    /// The most deliveries that are under way at once.
    public var maxParallel = 4
    /// The age of the last delivery from which on the server is asked for the outcome before the intent is sent again.
    public var reconcileAfter = Duration.seconds(300)
    /// The time after which another process takes over from one that died. It is renewed while a delivery lives.
    public var leaseDuration = Duration.seconds(30)
    /// The longest pause before the queue is read again, for what other processes have enqueued.
    public var pollInterval = Duration.seconds(1)
    /// The clock of leases.
    public var leaseClock = LeaseClock.system
    /// Called in the transaction that writes the end of an intent: the application's own change is written with it, or
    /// neither is. An error undoes both, and they are tried again.
    public var onEnd: (@Sendable (Database, QueuedIntent, QueuedOutcome) throws -> Void)?

    /// The default settings.
    public init() {}
  }

  /// Opens the queue, and creates its tables where they are missing. Their names begin with `semel_`.
  public init(
    database: any DatabaseWriter, origin: Origin, transport: some Transport, policy: Policy = .standard,
    credentials: (any CredentialSource)? = nil, budgets: RetryBudgets = RetryBudgets(),
    settings: Settings = Settings(), metrics: ClientMetrics = ClientMetrics(),
    environment: ClientEnvironment = .system, logger: Logger = Logger(label: "semel.outbox")
  ) async throws(OutboxError) {
    self.database = database
    self.budgets = budgets
    self.metrics = metrics
    self.logger = logger
    var settings = settings
    settings.leaseDuration = settings.leaseDuration.asPause
    settings.pollInterval = settings.pollInterval.asPause
    self.settings = settings
    courier = Courier(
      origin: origin, transport: transport, policy: policy,
      keeper: credentials.map { CredentialKeeper($0, clock: environment.clock) }, environment: environment)
    let hub = ChangeHub()
    self.hub = hub
    store = QueueStore(
      policy: policy, limits: settings.limits, seal: settings.seal, environment: environment,
      leaseClock: settings.leaseClock, owner: UUID().uuidString, leaseDuration: settings.leaseDuration
    ) { [onEnd = settings.onEnd] db, ends in
      for end in ends {
        do { if let intent = end.intent { try onEnd?(db, intent, end.outcome) } } catch {
          throw EndRefused(error: error)
        }
      }
      db.afterNextTransaction { _ in
        for end in ends {
          if let reason = end.outcome.dropReason { metrics.dropped(reason) }
          hub.send(end.change)
        }
      }
    }
    try await write { db in try QueueSchema.migrate(db) }
  }

  /// Enqueues an intent in a transaction of the application's own: both are there afterwards, or neither is.
  ///
  /// - Parameters:
  ///   - group: intents of one group are sent one after the other, in the order in which they were enqueued. Groups, and
  ///     intents without one, are sent side by side.
  ///   - once: the name of what the user does, such as `submit-cart-17`. A second tap gets the first one's intent, also
  ///     after a restart, until the first one is purged.
  ///   - coalesces: whether a newer PUT of the same path replaces this one while it is unsent, and a DELETE wins.
  ///   - values: the values that this intent takes from the responses of earlier ones.
  ///   - rule: the course of the group if this intent fails.
  public func enqueue(
    _ request: IntentRequest, group: String? = nil, once: String? = nil, coalesces: Bool = false,
    values: [ResponseValue] = [], rule: GroupRule = .proceed, in db: Database
  ) throws(OutboxError) -> QueuedIntent {
    let options = QueueStore.Options(
      group: group, rule: rule, once: once, coalesces: coalesces, values: values)
    let queued = try translatingErrors { try store.enqueue(request, options, in: db) }
    db.afterNextTransaction { [self] _ in
      hub.send(.enqueued(queued))
      doorbell.ring()
    }
    return queued
  }

  /// Enqueues an intent in a transaction of its own.
  public func enqueue(
    _ request: IntentRequest, group: String? = nil, once: String? = nil, coalesces: Bool = false,
    values: [ResponseValue] = [], rule: GroupRule = .proceed
  ) async throws(OutboxError) -> QueuedIntent {
    try await write { [self] db in
      try enqueue(request, group: group, once: once, coalesces: coalesces, values: values, rule: rule, in: db)
    }
  }

  /// The end of an intent, which is waited for. It is there after a restart as well, until it is purged.
  public func outcome(of intent: QueuedIntent) async throws(OutboxError) -> QueuedOutcome {
    while true {
      // The end of a wait ends its stream as well, which then has no more to wait for.
      let changes = hub.stream()
      if let outcome = try await outcomeIfEnded(of: intent) { return outcome }
      if Task.isCancelled { throw .cancelled }
      await nextEnd(of: intent, in: changes)
    }
  }

  /// The end of an intent, or `nil` while it has none.
  public func outcomeIfEnded(of intent: QueuedIntent) async throws(OutboxError) -> QueuedOutcome? {
    try await read { [store] db in
      guard let row = try store.row("id = ?", [intent.id], in: db) else { throw OutboxError.notFound }
      return try store.outcome(row)
    }
  }

  /// Waits until this process ends the intent, or for the time after which another process may have.
  private func nextEnd(of intent: QueuedIntent, in changes: AsyncStream<OutboxChange>) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for await case .ended(intent, _) in changes { return }
      }
      group.addTask { [self] in try? await courier.environment.clock.sleep(for: settings.pollInterval) }
      await group.next()
      group.cancelAll()
    }
  }

  /// The events of this queue in this process, from now on.
  public func changes() -> AsyncStream<OutboxChange> { hub.stream() }

  /// The numbers of the queue, of all its processes.
  public func statistics() async throws(OutboxError) -> QueueStatistics {
    try await read { [store] db in try store.statistics(in: db) }
  }

  /// Lets a held group go on.
  public func resume(group: String) async throws(OutboxError) {
    try await write { [store] db in try store.resume(group: group, in: db) }
    doorbell.ring()
  }

  /// Forgets intents that ended at least this long ago, with their responses and the names of their `once:`.
  @discardableResult
  public func purge(endedFor age: Duration) async throws(OutboxError) -> Int {
    let time = courier.environment.now().addingTimeInterval(-age.inSeconds)
    return try await write { [store] db in try store.purge(endedBefore: time, in: db) }
  }

  /// A write that a cancelled task completes all the same: what has happened is written down.
  func write<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(OutboxError) -> Value {
    let result = await Task { [database] in
      do { return Result<Value, OutboxError>.success(try await database.write(body)) } catch {
        return .failure(OutboxError(error))
      }
    }.value
    return try result.get()
  }

  func read<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(OutboxError) -> Value {
    do { return try await database.read(body) } catch { throw OutboxError(error) }
  }
}
