import ArgumentParser
import Calls
import Foundation
import Idempotency
import Wire

/// The connection of the commands to the admin listener of a running Semel.
struct AdminCall: ParsableArguments {
  static let defaultURL = "http://127.0.0.1:8081"

  @Option(help: "The admin listener; without it SEMEL_ADMIN counts, else \(AdminCall.defaultURL).")
  var admin: String?

  @Option(
    help:
      "The file with the admin token; without it SEMEL_ADMIN_TOKEN_FILE counts, else for a listener of this machine \(AdminCall.madeToken), here or in \(AdminCall.stateFolder)."
  )
  var tokenFile: String?

  func validate() throws {
    try require(admin != "", "--admin is empty: give the listener's URL, such as \(Self.defaultURL)")
    try require(tokenFile != "", "--token-file is empty: give the path of the file with the token")
  }

  private var url: String { Self.url(admin) }

  private var tokenPath: String? { tokenFile ?? Self.variable("SEMEL_ADMIN_TOKEN_FILE") ?? madeTokenPath }

  /// The file of the token that a start makes by the configurations of `semel init` and of the package.
  static let madeToken = "semel.token"
  static let stateFolder = "/var/lib/semel"

  /// The token of a Semel on this machine, where this user may read it. Another machine is sent no token unasked.
  private var madeTokenPath: String? {
    let host = URL(string: url)?.host(percentEncoded: false) ?? ""
    guard host == "localhost" || IPAddress(host)?.isLoopback == true else { return nil }
    return [Self.madeToken, "\(Self.stateFolder)/\(Self.madeToken)"].first { access($0, R_OK) == 0 }
  }

  /// The admin listener that an option names; without the option the one of the environment, else the default.
  static func url(_ option: String?) -> String { option ?? variable("SEMEL_ADMIN") ?? defaultURL }

  static func printUnreachable(_ url: String, _ failure: any Error) {
    StandardError.print(
      "semel: \(url) does not respond: \(failure); --admin or SEMEL_ADMIN names another listener")
  }

  private static func variable(_ name: String) -> String? {
    ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Sends a request about one record, and returns its document. Ends the command, with the reason, if there is none.
  ///
  /// - Parameter id: The record's id; `nil` if the response is what states it.
  func record(_ method: String, _ path: String, body: [UInt8]? = nil, id: String? = nil) throws -> Data {
    let document = try send(method, path, body: body)
    guard Self.isRecord(document, id) else { throw otherListener }
    return document
  }

  /// Whether a text is the document of a record, and of the one with this id if there is one.
  static func isRecord(_ json: Data, _ id: String?) -> Bool {
    struct Record: Decodable {
      let id: String
      let state: String
    }
    guard let record = try? JSONDecoder().decode(Record.self, from: json), !record.state.isEmpty,
      let found = RecordID(text: record.id)
    else { return false }
    return id.map { RecordID(text: $0) == found } ?? true
  }

  static func json(of document: some Encodable) throws -> [UInt8] {
    Array(try JSONEncoder().encode(document))
  }

  /// Sends a request and returns the response's body. Prints the reason and ends the command if the listener refuses.
  func send(_ method: String, _ path: String, body: [UInt8]? = nil) throws -> Data {
    let response = try exchange(method, path, body: body)
    guard 200..<300 ~= response.status else {
      printRefusal(response)
      throw ExitCode.failure
    }
    return Data(response.body)
  }

  /// Sends a request and returns the response, whatever its status. Ends the command, with the reason, without one.
  func exchange(_ method: String, _ path: String, body: [UInt8]? = nil) throws -> HTTPCall.Response {
    var call = HTTPCall(url: url + path)
    call.method = method
    call.body = body
    // Also without a body, because the listener accepts changes only in JSON.
    if method != "GET" { call.fields.append("Content-Type: application/json") }
    if let tokenPath {
      call.fields.append("Authorization: Bearer \(try ConfigurationFile.secret(at: tokenPath).revealed)")
    }
    do {
      return try call.send()
    } catch {
      Self.printUnreachable(url, error)
      throw ExitCode.failure
    }
  }

  /// Ends the command, and prints the names of the routes, if the running configuration has none of this name.
  func checkRoute(_ name: String) throws {
    let names = try read(RunningRoutes.self, from: send("GET", "/v1/config")).names
    guard !names.contains(name) else { return }
    throw failed("there is no route \(name); there are: \(names.joined(separator: ", "))")
  }

  /// Prints the routes' names if none is of this name, which may be an earlier one's, and the listener has them.
  func remarkUnknownRoute(_ name: String) throws {
    let response = try exchange("GET", "/v1/config")
    guard response.status == 200,
      let names = try? JSONDecoder().decode(RunningRoutes.self, from: Data(response.body)).names,
      !names.contains(name)
    else { return }
    StandardError.print(
      "semel: no route \(name) is configured; there are: \(names.joined(separator: ", "))")
  }

  private struct RunningRoutes: Decodable {
    struct Route: Decodable { let name: String }

    let routes: [Route]

    var names: [String] { routes.map(\.name) }
  }

  /// Decodes the listener's document. Prints the reason and ends the command if it is none.
  func read<Document: Decodable>(
    _ type: Document.Type, from json: Data, by decoder: JSONDecoder = JSONDecoder()
  ) throws -> Document {
    do {
      return try decoder.decode(type, from: json)
    } catch {
      throw otherListener
    }
  }

  /// The end of a command whose listener's response is not from Semel's admin listener, which is printed.
  var otherListener: ExitCode { Self.otherListener(url) }

  /// Prints that a response is not from the admin listener, and returns the command's end.
  @discardableResult
  static func otherListener(_ url: String) -> ExitCode {
    failed("the response of \(url) is not from Semel's admin listener: give that listener's URL with --admin")
  }

  func printRefusal(_ response: HTTPCall.Response) {
    guard let text = reason(response) else {
      Self.otherListener(url)
      return
    }
    StandardError.print("semel: \(response.status == 401 ? tokenAdvice : text)")
  }

  /// The way out where the listener does not take the token, or misses one.
  private var tokenAdvice: String {
    guard let tokenPath else {
      return "\(url) wants its admin token: name the token's file by --token-file or SEMEL_ADMIN_TOKEN_FILE"
    }
    return "\(url) does not take the token in \(tokenPath): the one in its token_file is another"
  }

  /// The listener's reason to refuse a request; `nil` if the response cannot be the admin listener's, which has these
  /// paths, and no types of problems. A type of Semel's is that of a listener for clients.
  private func reason(_ response: HTTPCall.Response) -> String? {
    struct Problem: Decodable {
      let detail: String?
      let type: String?
    }
    if let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body)) {
      if problem.type?.hasPrefix("/.well-known/idempotency#") == true { return nil }
      if let detail = problem.detail { return problem.type == nil ? detail : nil }
    }
    guard ![404, 405].contains(response.status), response.status >= 400 else { return nil }
    let text = String(decoding: response.body, as: UTF8.self)
    return text.isEmpty ? "\(url) responded with \(response.status)" : text
  }

  /// Prints the document of a changed record, and its warning also on standard error.
  static func showChange(_ json: Data) {
    struct Change: Decodable { let warning: String? }
    show(json)
    guard let warning = try? JSONDecoder().decode(Change.self, from: json).warning else { return }
    StandardError.print("semel: warning: \(warning)")
  }

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
