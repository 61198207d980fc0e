import ArgumentParser
import Foundation
import OpenAPI
import Settings

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
