import Foundation
import Glibc
import NIOConcurrencyHelpers

/// The real binary `semel`, started with a configuration of the test's own.
package final class SemelProcess: Sendable {
  /// Where it listens; the same over its restarts.
  package struct Ports: Sendable {
    package let proxy = FreePort.find()
    package let admin = FreePort.find()

    package init() {}
  }

  package let ports: Ports
  private let directory = TemporaryDirectory()
  private let running: NIOLockedValueBox<ManagedProcess?> = NIOLockedValueBox(nil)

  /// The binary: what `SEMEL_BINARY` names, else the one that was built beside the tests.
  package static var binary: String {
    if let named = ProcessInfo.processInfo.environment["SEMEL_BINARY"] { return named }
    let tests = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    return tests.deletingLastPathComponent().appendingPathComponent("semel").path
  }

  /// Starts it and waits until it is ready.
  package init(ports: Ports = Ports(), configuration: String) async throws {
    self.ports = ports
    try configuration.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    try await start()
  }

  /// The process as it runs now.
  package var process: ManagedProcess {
    guard let process = running.withLockedValue({ $0 }) else {
      preconditionFailure("SemelProcess: not started")
    }
    return process
  }

  package var client: HTTPClient { HTTPClient(port: ports.proxy) }
  package var admin: HTTPClient { HTTPClient(port: ports.admin) }

  /// Starts it, again after `kill`, and waits until `/readyz` says 200.
  package func start() async throws {
    let process = try launch()
    let deadline = ContinuousClock.now + .seconds(20)
    while ContinuousClock.now < deadline {
      if let exit = process.state.value.exit {
        throw TestFailure("semel ended with \(exit) before it was ready:\n\(process.output)\(process.errors)")
      }
      if await status(of: "/readyz") == 200 { return }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw TestFailure("semel does not become ready:\n\(process.output)\(process.errors)")
  }

  /// Starts it without waiting for anything.
  @discardableResult
  package func launch() throws -> ManagedProcess {
    let process = try ManagedProcess([Self.binary, "run", "--config", directory.file("semel.yaml")])
    running.withLockedValue { $0 = process }
    return process
  }

  /// The status of a page of the admin listener, `nil` where nobody answers.
  package func status(of page: String) async -> Int? {
    try? await admin.send("GET", page, within: .seconds(2)).status
  }

  /// Waits until a page of the admin listener has this status; `nil`: until nobody answers.
  package func page(_ page: String, becomes status: Int?, within span: Duration = .seconds(20)) async throws {
    let deadline = ContinuousClock.now + span
    while await self.status(of: page) != status {
      guard ContinuousClock.now < deadline else {
        throw TestFailure("\(page) does not become \(status.map(String.init) ?? "silent") within \(span)")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// Ends it at once (SIGKILL), as a crash would.
  package func kill() async throws { try await process.kill() }

  /// Asks it to finish (SIGTERM).
  package func terminate() { process.signal(SIGTERM) }

  /// Stops it wherever it is (SIGSTOP).
  package func freeze() { process.signal(SIGSTOP) }

  /// Lets it go on after `freeze`.
  package func thaw() { process.signal(SIGCONT) }

  /// A figure of `/proc/PID/status` in KiB, such as `VmHWM`: the most memory it ever held.
  package func memory(_ field: String) throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(process.id)/status", encoding: .utf8)
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("\(field):") }),
      let figure = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({
        Int($0)
      })
    else { throw TestFailure("no \(field) in /proc/\(process.id)/status") }
    return figure
  }
}
