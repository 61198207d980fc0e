import ArgumentParser
import Foundation

/// The record that a command is about, by its ID, or by route, caller and key.
struct RecordSelection: ParsableArguments {
  // IDs and keys may begin with a hyphen.
  @Option(
    parsing: .unconditional,
    help: "The record's id, as Idempotency-Request-Id and the log of the backend tell it.")
  var id: String?

  @Option(parsing: .unconditional, help: "The route's name.")
  var route: String?

  @Option(
    parsing: .unconditionalSingleValue,
    help: "The idempotency key. Once for each part of a key that has several.")
  var key: [String] = []

  @Option(
    parsing: .unconditionalSingleValue,
    help:
      "A part of the caller, such as 'header:Authorization=Bearer alice'. One for each part of the route's.")
  var caller: [String] = []

  @Option(help: "The request's path, where the route takes several.")
  var path: String?

  @Option(help: "The request's method, where the route takes several.")
  var method: String?

  @Option(help: "The request's host, where it was a name and not an address.")
  var host: String?

  func validate() throws {
    guard (id == nil) != (route == nil && key.isEmpty) else {
      throw ValidationError("give --id, or --route with --key and --caller")
    }
    guard id != nil || route != nil && !key.isEmpty else {
      throw ValidationError("give --route and --key together")
    }
    for part in caller where !part.contains("=") {
      throw ValidationError("--caller is PART=VALUE, such as 'header:Authorization=Bearer alice'")
    }
  }

  private struct Query: Encodable {
    var route: String
    /// A text, or a list of the texts of several parts.
    var key: Key
    var caller: [String: String]
    var path: String?
    var method: String?
    var host: String?

    struct Key: Encodable {
      var texts: [String]

      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if texts.count == 1 { try container.encode(texts[0]) } else { try container.encode(texts) }
      }
    }
  }

  /// Returns the record as the admin listener shows it.
  func find(by call: AdminCall) throws -> Data {
    if let id { return try call.send("GET", "/v1/records/\(Self.escaped(id))") }
    var parts: [String: String] = [:]
    for part in caller {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      parts[String(pair[0])] = String(pair[1])
    }
    return try call.send(
      "POST", "/v1/records/find",
      Query(
        route: route ?? "", key: Query.Key(texts: key), caller: parts, path: path, method: method, host: host
      ))
  }

  /// Returns the path of the record on the admin listener.
  func place(by call: AdminCall) throws -> String {
    struct Found: Decodable { let id: String }
    let id = try id ?? JSONDecoder().decode(Found.self, from: find(by: call)).id
    return "/v1/records/\(Self.escaped(id))"
  }

  private static func escaped(_ id: String) -> String {
    id.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(CharacterSet(charactersIn: "-_")))
      ?? id
  }
}
