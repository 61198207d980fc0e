import ArgumentParser
import Calls

/// `semel health`: requests the state of a running Semel, for container images without curl.
struct Health: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Ask a running Semel whether it is ready, or lives.",
    discussion: "Exit code 0 where it is, 1 where it is not or does not answer.")

  @Option(help: "The admin listener.")
  var admin = AdminCall.defaultURL

  @Flag(help: "Ask only whether it lives, not whether it takes requests.")
  var live = false

  func run() throws {
    var call = HTTPCall(url: admin + (live ? "/livez" : "/readyz"))
    call.timeoutMilliseconds = 2000
    do {
      let response = try call.send()
      print(String(decoding: response.body, as: UTF8.self), terminator: "")
      if response.status != 200 { throw ExitCode.failure }
    } catch let failure as HTTPCall.Failure {
      StandardError.print("semel: \(admin) does not answer: \(failure)")
      throw ExitCode.failure
    }
  }
}
