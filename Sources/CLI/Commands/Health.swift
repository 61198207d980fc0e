import ArgumentParser
import Calls

/// `semel health`: requests the state of a running Semel, for container images without curl.
struct Health: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check whether a running Semel is ready, or alive.",
    discussion: "Exit code 0 if it is; 1 if it is not, or does not respond.")

  @Option(help: "The admin listener; without it SEMEL_ADMIN counts, else \(AdminCall.defaultURL).")
  var admin: String?

  @Flag(help: "Check only whether it is alive, not whether it takes requests.")
  var live = false

  func run() throws {
    let url = AdminCall.url(admin)
    var call = HTTPCall(url: url + (live ? "/livez" : "/readyz"))
    call.timeoutMilliseconds = 2000
    do {
      let response = try call.send()
      guard [200, 503].contains(response.status) else { throw AdminCall.otherListener(url) }
      let text = String(decoding: response.body, as: UTF8.self)
      print(text, terminator: "")
      if response.status == 503 { throw ExitCode.failure }
      // The client listener passes these paths on, to whatever the backend makes of them.
      guard text.hasPrefix(live ? "ok\n" : "ready\n") else { throw AdminCall.otherListener(url) }
    } catch let failure as HTTPCall.Failure {
      AdminCall.printUnreachable(url, failure)
      throw ExitCode.failure
    }
  }
}
