public import CoreMetrics

/// The metrics of a client.
///
/// | metric | kind | meaning |
/// |---|---|---|
/// | `semel_client_attempts_total{class}` | counter | deliveries by the class of their end |
/// | `semel_client_replays_total` | counter | outcomes that an earlier delivery had brought about |
/// | `semel_client_success_seconds` | timer | the time from an intent's begin to its success |
/// | `semel_client_dropped_total{reason}` | counter | intents that ended without an outcome |
public struct ClientMetrics: Sendable {
  private let attempts: [DeliveryClass: Counter]
  private let replays: Counter
  private let success: CoreMetrics.Timer
  private let factory: any MetricsFactory

  /// The metrics of a factory; the default is the one that the process has bootstrapped.
  public init(factory: any MetricsFactory = MetricsSystem.factory) {
    self.factory = factory
    attempts = Dictionary(
      uniqueKeysWithValues: DeliveryClass.allCases.map { deliveryClass in
        let dimensions = [("class", deliveryClass.rawValue)]
        return (
          deliveryClass,
          Counter(label: "semel_client_attempts_total", dimensions: dimensions, factory: factory)
        )
      })
    replays = Counter(label: "semel_client_replays_total", factory: factory)
    success = Timer(label: "semel_client_success_seconds", factory: factory)
  }

  package func delivered(_ verdict: Verdict) {
    attempts[verdict.deliveryClass]?.increment()
    if verdict.wasReplayed { replays.increment() }
  }

  package func succeeded(after time: Duration) {
    success.recordNanoseconds(time.milliseconds.multipliedReportingOverflow(by: 1_000_000).partialValue)
  }

  package func dropped(_ reason: String) {
    Counter(label: "semel_client_dropped_total", dimensions: [("reason", reason)], factory: factory)
      .increment()
  }
}
