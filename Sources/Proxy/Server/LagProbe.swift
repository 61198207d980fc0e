import NIOCore
import Telemetry

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
