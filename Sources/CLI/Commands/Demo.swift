import ArgumentParser
import Foundation
import Logging
import ServiceLifecycle
import Settings
import UnixSignals
import Wire

struct Demo: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Run a demo backend with Semel in front of it, and print what to try.")

  @Option(help: "The port of Semel.")
  var port = 8080

  @Option(help: "The port of the demo backend.")
  var backendPort = 9000

  @Option(help: "Where the demo backend listens.")
  var backendHost = "127.0.0.1"

  @Flag(help: "Run the demo backend alone, for a Semel that runs elsewhere.")
  var onlyBackend = false

  func validate() throws {
    for (name, number) in [("--port", port), ("--backend-port", backendPort)]
    where !(0...65535 ~= number) {
      throw ValidationError("\(name) is a port from 0 to 65535, and 0 is any free one")
    }
    guard onlyBackend || port != backendPort || port == 0 else {
      throw ValidationError("--port and --backend-port are both \(port): give two ports")
    }
  }

  func run() async throws {
    var backend = DemoBackend(host: backendHost, port: backendPort)
    if onlyBackend {
      return try await ServiceGroup(
        services: [backend], gracefulShutdownSignals: [.sigterm, .sigint], logger: Logger(label: "demo")
      ).run()
    }
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("semel-demo-\(getpid())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let address = ServerAddress.tcp(host: backendHost, port: DemoPort.ofBackend(backendPort))
    let configuration = DemoConfiguration.text(
      port: port, backend: address, store: folder.appendingPathComponent("semel.db").path)
    switch Settings.load(text: configuration, file: "demo", environment: [:]) {
    case .success(var settings):
      // The demo's tokens stay, and its introduction comes first.
      settings.warnings = []
      let introduction = DemoIntroduction(port: port, backend: address)
      backend.onListening = { introduction.partIsListening() }
      try await Assembly(settings: settings, listenOption: "--port") { introduction.partIsListening() }
        .run(beside: [backend])
    case .failure(let errors):
      for issue in errors.issues {
        // The folder of temporary files and the host are all that may be wrong in it.
        let isHost = issue.path == "upstreams.orders.url"
        StandardError.print(isHost ? "semel: --backend-host: \(issue.message)" : "\(issue)")
      }
      throw ExitCode.badConfiguration
    }
  }
}
