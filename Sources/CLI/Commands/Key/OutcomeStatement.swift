import ArgumentParser
import Foundation

struct OutcomeStatement: ParsableArguments {
  @Option(help: "The status of the response.")
  var status: Int?

  @Option(help: "A header of the response, 'Name: value'.")
  var header: [String] = []

  @Option(help: "The file with the body of the response; - for standard input.")
  var body: String?

  func validate() throws {
    try require(200...599 ~= status ?? 200, "--status is that of a final response, 200 to 599")
    for line in header where !line.contains(":") { throw ValidationError("--header is 'Name: value'") }
    if let name = Self.repeatedName(in: header) {
      throw ValidationError("--header \(name) is given twice: give it once, with a comma between its values")
    }
  }

  /// The name of a field that has several lines, in lower case; `nil` if none has.
  static func repeatedName(in lines: [String]) -> String? {
    let names = lines.map { $0.prefix { $0 != ":" }.trimmingCharacters(in: .whitespaces).lowercased() }
    return names.enumerated().first { names[..<$0.offset].contains($0.element) }?.element
  }

  var isEmpty: Bool { status == nil && header.isEmpty && body == nil }

  struct Resolution: Encodable {
    var outcome: String
    var status: Int?
    var headers: [String: String]?
    var body_base64: String?
    var route: String?
    var amend: Bool?
    var attempt: Int?
  }

  /// The statement that the request was applied, with this response.
  func applied(route: String?) throws -> Resolution {
    Resolution(
      outcome: "applied", status: status, headers: Self.members(of: header),
      body_base64: try body.map { try Self.content(of: $0, option: "--body") }?.base64EncodedString() ?? "",
      route: route)
  }

  static func members(of lines: [String]) -> [String: String] {
    lines.reduce(into: [:]) { members, line in
      let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      members[pair[0].trimmingCharacters(in: .whitespaces)] = pair[1].trimmingCharacters(in: .whitespaces)
    }
  }

  /// The content of a file with a body, or of standard input, for the option that names it.
  static func content(of path: String, option: String) throws -> Data {
    if path == "-" { return FileHandle.standardInput.readDataToEndOfFile() }
    return try InputFile.require(path, of: option)
  }
}
