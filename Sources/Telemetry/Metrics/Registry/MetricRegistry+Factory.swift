import CoreMetrics

extension MetricRegistry: MetricsFactory {
  public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    guard case .counter(let series) = series(.counter, label, dimensions) else { return noHandler }
    return series
  }

  public func makeFloatingPointCounter(
    label: String, dimensions: [(String, String)]
  ) -> any FloatingPointCounterHandler {
    guard case .counter(let series) = series(.counter, label, dimensions) else { return noHandler }
    return series
  }

  public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    guard case .gauge(let series) = series(.gauge, label, dimensions) else { return noHandler }
    return series
  }

  public func makeRecorder(
    label: String, dimensions: [(String, String)], aggregate: Bool
  ) -> any RecorderHandler {
    switch series(aggregate ? .recorder : .gauge, label, dimensions) {
    case .gauge(let series): series
    case .histogram(let series): series
    case .counter, nil: noHandler
    }
  }

  public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    guard case .histogram(let series) = series(.timer, label, dimensions) else { return noHandler }
    return series
  }

  public func destroyCounter(_ handler: any CounterHandler) { release(handler) }
  public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { release(handler) }
  public func destroyMeter(_ handler: any MeterHandler) { release(handler) }
  public func destroyRecorder(_ handler: any RecorderHandler) { release(handler) }
  public func destroyTimer(_ handler: any TimerHandler) { release(handler) }

  /// The handler of a label without a series. It does nothing.
  private var noHandler: NOOPMetricsHandler { .instance }
}
