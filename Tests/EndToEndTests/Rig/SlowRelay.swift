import TestSupport

/// A slow network between Semel and its Redis: each piece arrives late, and large pieces take their time.
struct SlowRelay: Sendable {
  let port = FreePort.find()
  private let process: ManagedProcess

  /// Starts it and waits until it listens.
  ///
  /// - Parameters:
  ///   - delay: The delay of each piece towards Redis.
  ///   - bytesPerSecond: What it passes on towards Redis in a second; 0 for no limit.
  init(to target: Int, delay: Duration = .zero, bytesPerSecond: Int = 0) async throws {
    let milliseconds = delay.components.seconds * 1000 + delay.components.attoseconds / 1_000_000_000_000_000
    process = try await Python.serve(
      "slow_relay", ["\(port)", "\(target)", "\(milliseconds)", "\(bytesPerSecond)"])
  }
}
