import Admin
import Logging
import Platform
import ServiceLifecycle
import Settings
import Telemetry
import UnixSignals

/// Reloads the configuration file on request: applies it as a whole, or refuses it with reasons.
actor ConfigurationReload {
  private(set) var status: ConfigurationStatus
  private(set) var settings: Settings
  private let path: String
  private let check: @Sendable (Settings) async -> [String]
  private let adopt: @Sendable (Settings) async -> Void
  private let counters: Counters
  private let logger: Logger

  /// - Parameters:
  ///   - check: Returns the namespace's reasons against settings that the reload plan allows.
  ///   - adopt: Applies settings that both allow. Returns once all event loops use them.
  init(
    of file: ConfigurationFile, counters: Counters, logger: Logger,
    check: @escaping @Sendable (Settings) async -> [String],
    adopt: @escaping @Sendable (Settings) async -> Void
  ) {
    settings = file.settings
    path = file.path
    status = ConfigurationStatus(digest: file.digest, loadedAt: Timestamp.now())
    self.counters = counters
    self.logger = logger
    self.check = check
    self.adopt = adopt
  }

  /// Reads the file, and applies or refuses it. A cancelled task gives up a file that does not come.
  func reload() async {
    guard let reading = await read() else { return }
    do throws(ConfigurationFile.Fault) {
      let file = try reading.get()
      switch ReloadPlan(from: settings, to: file.settings) {
      case .apply:
        let reasons = await check(file.settings)
        if reasons.isEmpty { await apply(file) } else { refuse(reasons, of: file) }
      case .refuse(let reasons): refuse(reasons.map(\.description), of: file)
      }
    } catch {
      refuse(error.lines)
    }
  }

  /// Reads the file on a thread of its own, since a pipe may block for ever. `nil` if the task was cancelled before.
  private func read() async -> Result<ConfigurationFile, ConfigurationFile.Fault>? {
    let (readings, reading) = AsyncStream<Result<ConfigurationFile, ConfigurationFile.Fault>>.makeStream()
    let isStarted = startThread { [path] in
      reading.yield(Result { () throws(ConfigurationFile.Fault) in try ConfigurationFile(reading: path) })
      reading.finish()
    }
    guard isStarted else {
      return .failure(ConfigurationFile.Fault(lines: ["\(path): the system starts no thread to read it"]))
    }
    return await readings.first { _ in true }
  }

  private func apply(_ file: ConfigurationFile) async {
    await adopt(file.settings)
    settings = file.settings
    status = ConfigurationStatus(digest: file.digest, loadedAt: Timestamp.now())
    for warning in settings.warnings { logger.warning("\(warning)") }
    logger.notice("the configuration was reloaded", metadata: ["configuration": "\(file.digest)"])
    counters.add(.reloads)
  }

  private func refuse(_ reasons: [String], of file: ConfigurationFile? = nil) {
    status.refusal = ConfigurationStatus.Refusal(
      at: Timestamp.now(), digest: file?.digest, reasons: reasons)
    for reason in reasons { logger.error("reload: \(reason)") }
    logger.error(
      "the reload was refused; the old configuration stays in use",
      metadata: ["configuration": "\(status.digest)"])
    counters.add(.reloadsRefused)
  }
}

/// Reloads on SIGHUP, once for all signals that come during a reload or before the listeners of clients stand.
struct ReloadService: Service {
  let signals: UnixSignalsSequence
  let proxyStands: ListeningGate
  let reload: ConfigurationReload

  func run() async throws {
    await cancelWhenGracefulShutdown {
      let (requests, request) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
      async let forwarding: Void = {
        for await _ in signals { request.yield() }
      }()
      // An earlier reload would change the namespace, even if the start fails.
      guard (try? await proxyStands.opened()) != nil else { return }
      for await _ in requests { await reload.reload() }
      await forwarding
    }
  }
}
