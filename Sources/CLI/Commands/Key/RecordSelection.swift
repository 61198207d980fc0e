import ArgumentParser
import Foundation
import Idempotency

/// The record that a command is about, by its ID, or by route, caller and key.
struct RecordSelection: ParsableArguments {
  // IDs may begin with a hyphen.
  @Option(
    parsing: .unconditional,
    help: "The record's id: the backend's Idempotency-Request-Id, and `record` in the log.")
  var id: String?

  @OptionGroup var named: NamedRecord

  /// The route's name.
  var route: String? { named.route }

  func validate() throws {
    guard id != "" else { throw ValidationError("--id is empty: give the record's id") }
  }

  /// Refuses a selection that is not of one record.
  ///
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

  /// Whether all records of a route are selected.
  var isRouteAlone: Bool { id == nil && route != nil && named.hasNoParts }

  /// Returns the record as the admin listener shows it.
  func find(by call: AdminCall) throws -> Data {
    guard let id else { return try named.find(by: call) }
    return try call.record("GET", Self.place(of: id), id: id)
  }

  /// Returns the record's id.
  func recordID(by call: AdminCall) throws -> String {
    struct Found: Decodable { let id: String }
    return try id ?? call.read(Found.self, from: find(by: call)).id
  }

  /// The path of a record on the admin listener.
  static func place(of id: String) -> String {
    let allowed = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-_"))
    return "/v1/records/" + (id.addingPercentEncoding(withAllowedCharacters: allowed) ?? id)
  }
}
