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

  /// Whether nothing but perhaps the route is given.
  var hasNoParts: Bool {
    key.isEmpty && caller.isEmpty && path == nil && method == nil && host == nil
  }

  /// The description of a record for the admin listener.
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

  /// The parts of the caller with their values.
  private var parts: [(String, String)] {
    caller.map { part in
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (String(pair[0]), String(pair[1]))
    }
  }

  /// Returns the record as the admin listener shows it.
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
