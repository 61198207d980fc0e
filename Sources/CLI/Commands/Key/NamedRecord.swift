import ArgumentParser
import Foundation
import Idempotency

/// The record that a command is about, by route, caller and key.
struct NamedRecord: ParsableArguments {
  @Option(parsing: .unconditional, help: "The route's name.")
  var route: String?

  @OptionGroup var key: StatedKey

  @Option(
    parsing: .unconditionalSingleValue,
    help:
      "A part of the caller, such as 'header:Authorization=Bearer alice', as the client sends it. Once for each part."
  )
  var caller: [String] = []

  @Option(help: "The request's path, where the route takes several.")
  var path: String?

  @Option(help: "The request's method, where the route takes several.")
  var method: String?

  @Option(help: "The request's host, where it was a name and not an address.")
  var host: String?

  func validate() throws {
    for part in caller where !part.contains("=") {
      throw ValidationError("--caller is PART=VALUE, such as 'header:Authorization=Bearer alice'")
    }
    var names: Set<String> = []
    for (name, _) in parts where !names.insert(CallerPart.normalized(name)).inserted {
      throw ValidationError("--caller \(name) is given twice: give each part once")
    }
  }

  /// Whether a record is named, and not all of a route, or none.
  var isComplete: Bool { route != nil && !key.isEmpty }

  var hasNoParts: Bool {
    key.isEmpty && caller.isEmpty && path == nil && method == nil && host == nil
  }

  struct Query: Encodable {
    var route: String
    var key: StatedKey
    var caller: [String: String]
    var path: String?
    var method: String?
    var host: String?
  }

  var query: Query {
    Query(
      route: route ?? "", key: key, caller: Dictionary(uniqueKeysWithValues: parts), path: path,
      method: method, host: host)
  }

  private var parts: [(String, String)] {
    caller.map { part in
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (String(pair[0]), String(pair[1]))
    }
  }

  func find(by call: AdminCall) throws -> Data {
    let document = try call.record("POST", "/v1/records/find", body: try AdminCall.json(of: query))
    struct Found: Decodable { let state: String }
    if try call.read(Found.self, from: document).state == "absent" { remarkMissingHost() }
    return document
  }

  /// Prints on standard error which requests the record belongs to, where no host was given.
  func remarkMissingHost() {
    guard host == nil else { return }
    StandardError.print(
      "semel: without --host this is the record of requests to an address; give the name that clients write in Host"
    )
  }
}

/// The idempotency key that an operator gives, part by part.
struct StatedKey: ParsableArguments {
  // Keys may begin with a hyphen.
  @Option(
    name: .customLong("key"), parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      "The idempotency key. Once for each part of a key that has several.", valueName: "key"))
  var parts: [String] = []

  func validate() throws {
    try require(!parts.contains(""), "--key is empty: give the one that the client sends")
  }

  var isEmpty: Bool { parts.isEmpty }
}

extension StatedKey: Encodable {
  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if parts.count == 1 { try container.encode(parts[0]) } else { try container.encode(parts) }
  }
}

/// The record that a command is about, by its ID, or by route, caller and key.
struct RecordSelection: ParsableArguments {
  // IDs may begin with a hyphen.
  @Option(
    parsing: .unconditional,
    help: "The record's id: the backend's Idempotency-Request-Id, and `record` in the log.")
  var id: String?

  @OptionGroup var named: NamedRecord

  var route: String? { named.route }

  func validate() throws {
    guard id != "" else { throw ValidationError("--id is empty: give the record's id") }
  }

  /// - Parameter takesRoute: Whether a route may stand beside an ID.
  func requireOne(takesRoute: Bool = false) throws {
    let isByID = id != nil && takesRoute && named.key.isEmpty
    guard isByID || (id == nil) != (route == nil && named.key.isEmpty) else {
      throw ValidationError("give --id, or --route with --key and --caller")
    }
    guard let id else {
      guard named.isComplete else { throw ValidationError("give --route and --key together") }
      return
    }
    guard RecordID(text: id) != nil else {
      throw ValidationError("--id is the 43 characters of Idempotency-Request-Id (in the log, of record)")
    }
  }

  var isEmpty: Bool { id == nil && route == nil && named.hasNoParts }

  var isRouteAlone: Bool { id == nil && route != nil && named.hasNoParts }

  func find(by call: AdminCall) throws -> Data {
    guard let id else { return try named.find(by: call) }
    return try call.record("GET", Self.place(of: id), id: id)
  }

  func recordID(by call: AdminCall) throws -> String {
    struct Found: Decodable { let id: String }
    return try id ?? call.read(Found.self, from: find(by: call)).id
  }

  static func place(of id: String) -> String {
    let allowed = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-_"))
    return "/v1/records/" + (id.addingPercentEncoding(withAllowedCharacters: allowed) ?? id)
  }
}
