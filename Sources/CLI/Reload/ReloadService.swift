import ServiceLifecycle
import UnixSignals

/// Reloads the configuration on SIGHUP. Signals that arrive during a reload cause one more reload after it.
struct ReloadService: Service {
  let signals: UnixSignalsSequence
  let reload: ConfigurationReload

  func run() async throws {
    for await _ in signals.cancelOnGracefulShutdown() { await reload.reload() }
  }
}
