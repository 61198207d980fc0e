import ServiceLifecycle
import UnixSignals

/// Reloads on SIGHUP. Signals that come during a reload make one more after it.
struct ReloadService: Service {
  let signals: UnixSignalsSequence
  let reload: ConfigurationReload

  func run() async throws {
    for await _ in signals.cancelOnGracefulShutdown() { await reload.reload() }
  }
}
