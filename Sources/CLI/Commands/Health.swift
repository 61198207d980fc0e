import ArgumentParser
import Calls
import Foundation
import OpenAPI
import Platform
import Settings
import Telemetry

struct Health: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "health",
    abstract: "Check whether a running Semel is ready, alive, or has reloaded its configuration.",
    discussion: "Exit code 0 if it is; 1 if it is not, or does not respond.")

  @Option(help: "The admin listener; without it SEMEL_ADMIN counts, else \(AdminCall.defaultURL).")
  var admin: String?

  @Flag(help: "Check only whether it is alive, not whether it takes requests.")
  var live = false

  @Option(
    help: ArgumentHelp(
      "After a SIGHUP: wait until this configuration file is in use, or was refused.", valueName: "file"))
  var reloaded: String?

  func validate() throws {
    guard reloaded == nil || !live else { throw ValidationError("give --live or --reloaded, not both") }
  }

  func run() throws {
    if let reloaded { return try awaitReload(of: reloaded) }
    let url = AdminCall.url(admin)
    let (status, text) = try Self.probe(url, live ? "/livez" : "/readyz")
    guard [200, 503].contains(status) else { throw AdminCall.otherListener(url) }
    print(text, terminator: "")
    if status == 503 { throw ExitCode.failure }
    // The client listener passes these paths on, to whatever the backend makes of them.
    guard text.hasPrefix(live ? "ok\n" : "ready\n") else { throw AdminCall.otherListener(url) }
  }

  private static func probe(_ url: String, _ path: String) throws -> (status: Int, text: String) {
    var call = HTTPCall(url: url + path)
    call.timeoutMilliseconds = 2000
    do throws(HTTPCall.Failure) {
      let response = try call.send()
      return (response.status, String(decoding: response.body, as: UTF8.self))
    } catch {
      AdminCall.printUnreachable(url, error)
      throw ExitCode.failure
    }
  }

  /// The time for a reload, in which a configuration of thousands of routes is compared.
  private static let maxReloadWait = Duration.seconds(20)
  /// The time before this command in which its SIGHUP was sent, in milliseconds.
  private static let signalAge: Int64 = 5000

  /// Waits for the verdict on a file. An earlier refusal of it counts once nothing else has come for the whole time.
  private func awaitReload(of path: String) throws {
    let digest = try ConfigurationFile.load(path).digest
    let url = AdminCall.url(admin)
    let start = ContinuousClock.now
    // The signal may have been sent, and the file refused, just before this process began.
    let since = Timestamp.text(milliseconds: WallClock.milliseconds() - Self.signalAge)
    while true {
      let lines = try Self.probe(url, "/readyz").text.split(separator: "\n")
      guard let inUse = lines.firstIndex(where: { $0.hasPrefix("configuration ") }) else {
        throw AdminCall.otherListener(url)
      }
      let refused = lines.firstIndex { $0.hasPrefix("reload refused ") && $0.hasSuffix(" of \(digest):") }
      let isOver = ContinuousClock.now - start > Self.maxReloadWait
      if let refused {
        let at = lines[refused].split(separator: " ")[2]
        if at >= since || isOver {
          StandardError.print(
            "semel: the reload of \(path) was refused, and the old configuration stays in use:")
          for reason in lines[(refused + 1)...].prefix(while: { $0.hasPrefix("  ") }) {
            StandardError.print("semel:\(reason.dropFirst())")
          }
          throw ExitCode.failure
        }
      } else if lines[inUse].hasPrefix("configuration \(digest),") {
        return print("\(path) is in use")
      } else if isOver {
        throw failed("\(path) is not in use: \(lines[inUse]); was SIGHUP sent?")
      }
      Thread.sleep(forTimeInterval: 0.05)
    }
  }
}

struct OpenAPICommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "openapi",
    abstract: "Add keys, markers of replays and refusals to an OpenAPI document.",
    discussion: """
      Reads an OpenAPI document, 3.0 or 3.1 in JSON or YAML, and prints it with what the protected routes of the \
      configuration add to its operations, so that generated clients know it: the field of the key, the fields by which \
      a replay is known, and Semel's refusals. What the document describes itself stays. Standard error says which \
      operations are protected. Exit code 1 where no operation meets a protected route.
      """)

  @Option(
    help:
      "The URL at which clients reach the API, in place of the document's first server: its host and its base path."
  )
  var server: String?

  @Argument(help: "The configuration file.")
  var file: String

  @Argument(help: "The OpenAPI document; - for the standard input.")
  var document: String

  func run() throws {
    let routes = try ConfigurationFile.load(file, isOffline: true).settings.routes
    let text = String(decoding: try content(), as: UTF8.self)
    do throws(APIDocument.Fault) {
      let annotation = try Annotation(
        try APIDocument(text), by: routes, server: server.map(ServerAddress.init))
      print(try annotation.document.text(), terminator: "")
      StandardError.print(Self.report(annotation))
      if !annotation.operations.isEmpty { return }
    } catch {
      StandardError.print("semel: \(document): \(error)")
    }
    throw ExitCode.failure
  }

  private func content() throws -> Data {
    do throws(InputFile.Unreadable) {
      return try InputFile.content(of: document == "-" ? "/dev/stdin" : document)
    } catch {
      throw failed("\(error)")
    }
  }

  private static func report(_ annotation: Annotation) -> String {
    let lines = annotation.operations.map { operation in
      "\(operation.name): route \(operation.route), key \(operation.key.joined(separator: " or "))"
        + (operation.isCertain ? "" : ", for some of its requests")
    }
    let unmet = annotation.unmet.map { "warning: route \($0): no operation of the document meets it" }
    return (lines + ["\(annotation.unprotected) more operations are not protected"] + unmet)
      .joined(separator: "\n")
  }
}
