public import Logging

/// A client whose calls are carried out once, however often they are sent, while the process lives.
///
/// ```swift
/// let client = IntentClient(origin: origin, transport: .urlSession())
/// let intent = Intent(try .post("/v1/orders", json: order))
/// switch try await client.send(intent) {
/// case .completed(let response, let wasReplayed): …
/// case .rejected(let response): …
/// case .unknown(let problem): …   // nobody knows: keep the intent, and send it later under the same key
/// }
/// ```
///
/// Queue an intent that has to survive the process in an `Outbox` (module `SemelOutbox`).
public struct IntentClient: Sendable {
  private let courier: Courier
  private let budgets: RetryBudgets
  private let metrics: ClientMetrics
  private let logger: Logger

  /// A client of one server.
  ///
  /// Clients that share an account share one object: it holds the credentials. Clients of one host share `budgets`.
  public init(
    origin: Origin, transport: some Transport, policy: Policy = .standard,
    credentials: (any CredentialSource)? = nil, budgets: RetryBudgets = RetryBudgets(),
    metrics: ClientMetrics = ClientMetrics(), environment: ClientEnvironment = .system,
    logger: Logger = Logger(label: "semel.client")
  ) {
    self.init(
      Courier(
        origin: origin, transport: transport, policy: policy,
        keeper: credentials.map { CredentialKeeper($0, clock: environment.clock) }, environment: environment),
      budgets: budgets, metrics: metrics, logger: logger)
  }

  init(_ courier: Courier, budgets: RetryBudgets, metrics: ClientMetrics, logger: Logger) {
    self.courier = courier
    self.budgets = budgets
    self.metrics = metrics
    self.logger = logger
  }

  /// Sends an intent until it has its end, or the policy's limits are reached.
  ///
  /// An error says that nothing was carried out. In all other cases of doubt the outcome is `unknown`, also when the
  /// task is cancelled while a delivery is under way.
  public func send(_ intent: Intent) async throws(CallError) -> Outcome {
    if let name = intent.request.credentialField {
      throw .invalidRequest("\(name) is a credential: a CredentialSource applies it to each delivery.")
    }
    guard intent.request.hasValidPath else {
      throw .invalidRequest("The path \(intent.request.path) does not begin with a slash.")
    }
    let elapsed = courier.environment.clock.stopwatch()
    var lifecycle = IntentLifecycle.call(at: courier.environment.now(), policy: courier.policy)
    while true {
      if Task.isCancelled { return try cancelled(lifecycle) }
      if case .end(let end) = lifecycle.begin(now: courier.environment.now()) {
        return try outcome(end, elapsed())
      }
      switch try await deliver(intent, &lifecycle) {
      case .end(let end): return try outcome(end, elapsed())
      case .wait(let pause):
        logger.debug("a delivery is repeated", metadata: ["key": "\(intent.key)", "pause": "\(pause)"])
        // An early end is a cancelled task, which the next turn of the loop finds.
        try? await courier.environment.clock.sleep(for: pause)
      }
    }
  }

  /// Asks what became of an intent, without sending it. `attach` is the time to wait for a delivery in flight.
  ///
  /// The server has to be a Semel whose operator publishes outcomes.
  public func state(of intent: Intent, attach: Duration? = nil) async throws(InquiryError) -> RecordState {
    try await courier.inquire(about: intent, attach: attach)
  }

  private func deliver(
    _ intent: Intent, _ lifecycle: inout IntentLifecycle
  ) async throws(CallError) -> IntentLifecycle.VerdictAction {
    let start = courier.environment.now()
    let verdict: Verdict
    do {
      verdict = try await courier.deliver(intent)
    } catch .body(let reason, _) where !lifecycle.progress.mayHaveRun {
      throw .invalidRequest(reason)
    } catch .credentials(let error) where !lifecycle.progress.mayHaveRun {
      metrics.dropped("credentials")
      throw .credentials(error)
    } catch {
      metrics.dropped("unknown")
      return .end(.unknown(nil))
    }
    metrics.delivered(verdict)
    let host = courier.origin.authority
    if [.success, .permanent].contains(verdict.deliveryClass) { budgets.succeeded(at: host) }
    return lifecycle.delivered(
      verdict, start: start, now: courier.environment.now(), random: courier.environment.random()
    ) { budgets.failed(at: host, isThrottled: verdict.isThrottled) }
  }

  private func cancelled(_ lifecycle: IntentLifecycle) throws(CallError) -> Outcome {
    guard lifecycle.progress.mayHaveRun else {
      metrics.dropped("cancelled")
      throw .cancelled
    }
    metrics.dropped("unknown")
    return .unknown(nil)
  }

  private func outcome(_ end: IntentLifecycle.End, _ time: Duration) throws(CallError) -> Outcome {
    switch end {
    case .completed(let response, let wasReplayed):
      metrics.succeeded(after: time)
      return .completed(response, wasReplayed: wasReplayed)
    case .rejected(let response):
      metrics.dropped("rejected")
      return .rejected(response)
    case .unknown(let problem):
      metrics.dropped("unknown")
      return .unknown(problem)
    case .notExecuted(let reason, let response):
      metrics.dropped("\(reason)")
      switch reason {
      case .attempts, .time: throw .notExecuted(response)
      case .budget: throw .budgetExhausted(response)
      case .credentials: throw .credentials(.refused)
      }
    }
  }
}
