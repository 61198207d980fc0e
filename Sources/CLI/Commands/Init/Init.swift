import ArgumentParser
import Foundation
import Settings

/// `semel init`: a configuration to start from.
struct Init: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write a commented configuration to start from.",
    discussion: "It asks nothing, and leaves a file that exists as it is.")

  @Argument(help: "The file to write.")
  var file = "semel.yaml"

  @Option(help: "The URL of the backend.")
  var upstream = "http://127.0.0.1:9000"

  @Option(help: "The store: `embedded`, or the URL of a Redis.")
  var store = "embedded"

  @Option(help: "The path of the requests to protect.")
  var path = "/**"

  func run() throws {
    let text = StarterConfiguration(upstream: upstream, store: store, path: path).text
    if case .failure(let errors) = Settings.load(text: text, file: file, environment: [:]) {
      for issue in errors.issues { StandardError.print("\(issue)") }
      throw ExitCode.badConfiguration
    }
    do {
      try Data(text.utf8).write(to: URL(fileURLWithPath: file), options: .withoutOverwriting)
    } catch let error as CocoaError where error.code == .fileWriteFileExists {
      StandardError.print("semel: \(file) exists; give another name, or move it away")
      throw ExitCode.failure
    } catch {
      StandardError.print("semel: \(file) cannot be written: its folder must exist, and be yours to write to")
      throw ExitCode.failure
    }
    print(
      """
      \(file) is written. Next:

        semel check \(file)
        semel explain \(file) POST \(samplePath) -H 'Authorization: Bearer alice' -H 'Idempotency-Key: order-1'
        semel run \(file)
      """)
  }

  /// A path that the route takes.
  private var samplePath: String {
    path.replacing("/**", with: "/orders").replacing("{", with: "").replacing("}", with: "")
  }
}
