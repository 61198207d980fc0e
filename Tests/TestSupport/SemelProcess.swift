import Foundation
import Glibc
import NIOConcurrencyHelpers

/// The real binary `semel`, started with a configuration of the test's own.
package final class SemelProcess: Sendable {
  /// The ports, which stay the same over restarts.
  package struct Ports: Sendable {
    package let proxy = FreePort.find()
    package let admin = FreePort.find()

    package init() {}
  }

  package let ports: Ports
  private let wrapper: [String]
  package let directory = TemporaryDirectory()
  private let running: NIOLockedValueBox<ManagedProcess?> = NIOLockedValueBox(nil)

  /// The binary: what `SEMEL_BINARY` names, else the one that was built beside the tests.
  package static var binary: String {
    if let named = ProcessInfo.processInfo.environment["SEMEL_BINARY"] { return named }
    let tests = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    return tests.deletingLastPathComponent().appendingPathComponent("semel").path
  }

  /// Whether the binary is optimised, by the folder that SwiftPM has built it in.
  package static var isRelease: Bool { binary.contains("/release/") }

  /// Starts it and waits until it is ready.
  ///
  /// - Parameters:
  ///   - wrapper: what its command is run by.
  ///   - waitsUntilReady: false where its store is not to be had: then it waits for its listeners alone.
  package init(
    ports: Ports = Ports(), configuration: String, under wrapper: [String] = [], waitsUntilReady: Bool = true
  ) async throws {
    self.ports = ports
    self.wrapper = wrapper
    try configuration.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    if waitsUntilReady {
      try await start()
    } else {
      try await launch().line(containing: #""message":"listening""#)
      try await page("/livez", becomes: 200)
    }
  }

  /// The process as it runs now.
  package var process: ManagedProcess {
    guard let process = running.withLockedValue({ $0 }) else {
      preconditionFailure("SemelProcess: not started")
    }
    return process
  }

  package var client: HTTPClient { HTTPClient(port: ports.proxy) }
  package var admin: HTTPClient { HTTPClient(port: ports.admin, host: "127.0.0.1:\(ports.admin)") }

  /// Starts it, again after `kill`, and waits until `/readyz` says 200.
  ///
  /// - Parameter wrapper: what its command is run by, this time.
  package func start(under wrapper: [String]? = nil) async throws {
    let process = try launch(under: wrapper)
    let deadline = ContinuousClock.now + .seconds(60)
    var last = "no response"
    while ContinuousClock.now < deadline {
      if let exit = process.state.value.exit {
        throw TestFailure("semel ended with \(exit) before it was ready:\n\(process.output)\(process.errors)")
      }
      do {
        let response = try await admin.send("GET", "/readyz", within: .seconds(5))
        if response.status == 200 { return }
        last = "\(response.status) \(response.text)"
      } catch {
        last = "\(error)"
      }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw TestFailure("semel does not become ready: \(last)\n\(process.output)\(process.errors)")
  }

  /// Starts it without waiting for anything.
  @discardableResult
  package func launch(under wrapper: [String]? = nil) throws -> ManagedProcess {
    let command = (wrapper ?? self.wrapper) + [Self.binary, "run", "--config", directory.file("semel.yaml")]
    let process = try ManagedProcess(command)
    running.withLockedValue { $0 = process }
    return process
  }

  /// The status of a page of the admin listener; `nil` without a response.
  package func status(of page: String, within span: Duration = .seconds(20)) async -> Int? {
    try? await admin.send("GET", page, within: span).status
  }

  /// Waits until a page of the admin listener has this status; `nil` waits until there is no response.
  package func page(_ page: String, becomes status: Int?, within span: Duration = .seconds(20)) async throws {
    let deadline = ContinuousClock.now + span
    while await self.status(of: page) != status {
      guard ContinuousClock.now < deadline else {
        throw TestFailure("\(page) does not become \(status.map(String.init) ?? "silent") within \(span)")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// Writes another configuration, which counts from the next start on.
  package func configure(_ configuration: String) throws {
    try configuration.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
  }

  /// Writes another configuration, asks for a reload (SIGHUP), and waits until it was taken or refused.
  package func reload(_ configuration: String, within span: Duration = .seconds(20)) async throws {
    try configure(configuration)
    let before = try await reloads()
    process.signal(SIGHUP)
    let deadline = ContinuousClock.now + span
    while try await reloads() == before {
      guard ContinuousClock.now < deadline else { throw TestFailure("no reload within \(span)") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private func reloads() async throws -> Int {
    try await counter("semel_reloads_total") + counter("semel_reloads_refused_total")
  }

  /// Waits until a figure of the metrics page, or of its series with a label, is this one.
  ///
  /// Most of them change once a response has been written, which its client may outrun.
  package func counter(
    _ name: String, label: String = "", becomes figure: Int, within span: Duration = .seconds(20)
  ) async throws {
    try await counter(name, label: label, within: span) { $0 == figure }
  }

  /// Waits until a figure of the metrics page, or of its series with a label, is at least this one.
  package func counter(
    _ name: String, label: String = "", isAtLeast figure: Int, within span: Duration = .seconds(20)
  ) async throws {
    try await counter(name, label: label, within: span) { $0 >= figure }
  }

  private func counter(
    _ name: String, label: String = "", within span: Duration, _ isReached: (Int) -> Bool
  ) async throws {
    let deadline = ContinuousClock.now + span
    while true {
      let figure = try await counter(name, label: label)
      if isReached(figure) { return }
      guard ContinuousClock.now < deadline else {
        throw TestFailure("\(name) is still \(figure) after \(span)")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// A figure of the metrics page: the sum of a family's series, or of those with a label.
  package func counter(_ name: String, label: String = "") async throws -> Int {
    let page = Array(try await admin.send("GET", "/metrics").text.utf8)
    guard page.offset(of: "# TYPE \(name) ") != nil else {
      throw TestFailure("no \(name) on the metrics page")
    }
    var (sum, place) = (0, page.offset(of: "\n" + name))
    while let start = place {
      let line = page.line(around: start + 1)
      if line.hasPrefix("\(name) ") || line.hasPrefix("\(name){"), label.isEmpty || line.contains(label) {
        sum += line.split(separator: " ").last.flatMap { Int($0) } ?? 0
      }
      place = page.offset(of: "\n" + name, from: start + 1)
    }
    return sum
  }

  /// Ends it at once (SIGKILL), as a crash would.
  package func kill() async throws { try await process.kill() }

  /// Asks it to finish (SIGTERM).
  package func terminate() { process.signal(SIGTERM) }

  /// Stops it wherever it is (SIGSTOP), and returns once each of its threads stands still.
  package func freeze() {
    process.signal(SIGSTOP)
    ThreadState.awaitStop(of: process.id)
  }

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
