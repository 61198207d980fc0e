import ArgumentParser
import Calls
import Foundation
import Idempotency

/// The connection of the commands to the admin listener of a running Semel.
struct AdminCall: ParsableArguments {
  static let defaultURL = "http://127.0.0.1:8081"

  @Option(help: "The admin listener; without it SEMEL_ADMIN counts, else \(AdminCall.defaultURL).")
  var admin: String?

  @Option(help: "The file with the admin token; without it SEMEL_ADMIN_TOKEN_FILE counts.")
  var tokenFile: String?

  private var url: String { admin ?? Self.variable("SEMEL_ADMIN") ?? Self.defaultURL }

  /// Returns a variable of the environment; an empty one counts as none.
  private static func variable(_ name: String) -> String? {
    ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Sends a request and returns the response's JSON. Prints the reason and ends the command if the listener refuses.
  func send(_ method: String, _ path: String, _ body: some Encodable) throws -> Data {
    try send(method, path, body: Array(try JSONEncoder().encode(body)))
  }

  func send(_ method: String, _ path: String, body: [UInt8]? = nil) throws -> Data {
    var call = HTTPCall(url: url + path)
    call.method = method
    call.body = body
    // Also without a body, because the listener accepts changes only in JSON.
    if method != "GET" { call.fields.append("Content-Type: application/json") }
    if let tokenFile = tokenFile ?? Self.variable("SEMEL_ADMIN_TOKEN_FILE") {
      call.fields.append("Authorization: Bearer \(try ConfigurationFile.secret(at: tokenFile).revealed)")
    }
    let response: HTTPCall.Response
    do {
      response = try call.send()
    } catch {
      StandardError.print("semel: \(url) does not respond: \(error)")
      throw ExitCode.failure
    }
    guard 200..<300 ~= response.status else {
      StandardError.print("semel: \(Self.reason(response))")
      throw ExitCode.failure
    }
    return Data(response.body)
  }

  private static func reason(_ response: HTTPCall.Response) -> String {
    struct Problem: Decodable { let detail: String }
    if let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body)) {
      return problem.detail
    }
    let text = String(decoding: response.body, as: UTF8.self)
    return text.isEmpty ? "the admin listener responded with \(response.status)" : text
  }

  /// Prints the document of a changed record, and its warning also on standard error.
  static func showChange(_ json: Data) {
    struct Change: Decodable { let warning: String? }
    show(json)
    guard let warning = try? JSONDecoder().decode(Change.self, from: json).warning else { return }
    StandardError.print("semel: warning: \(warning)")
  }

  /// Prints a document, indented.
  static func show(_ json: Data) {
    let object = try? JSONSerialization.jsonObject(with: json)
    let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    guard let object, let pretty = try? JSONSerialization.data(withJSONObject: object, options: options)
    else {
      return print(String(decoding: json, as: UTF8.self))
    }
    print(String(decoding: pretty, as: UTF8.self))
  }
}
