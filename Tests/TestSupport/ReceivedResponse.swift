import Foundation

/// A response as a client got it, byte by byte.
package struct ReceivedResponse: Sendable {
  /// The status line and the field lines, with the empty line.
  package var head: [UInt8]
  package var status: Int
  package var minorVersion: Int
  package var fields: [(name: String, value: String)]
  /// Without its framing.
  package var body: [UInt8] = []
  package var trailers: [(name: String, value: String)] = []

  /// The value of the one field of this name.
  ///
  /// A field that stands there twice reads as both values, so that no comparison succeeds by chance.
  package subscript(name: String) -> String? {
    let values = values(name)
    return values.isEmpty ? nil : values.joined(separator: " AND ")
  }

  /// The values of all fields of this name.
  package func values(_ name: String) -> [String] {
    fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
  }

  package var text: String { String(decoding: body, as: UTF8.self) }

  /// The problem document in its body; `nil` where that is something else.
  package var problem: ProblemDocument? {
    guard self["Content-Type"] == "application/problem+json" else { return nil }
    return try? JSONDecoder().decode(ProblemDocument.self, from: Data(body))
  }
}

/// The members of a refusal of Semel's own (contract, section 5).
package struct ProblemDocument: Decodable, Sendable, Equatable {
  package var type: String
  package var title: String
  package var status: Int
  package var detail: String
  package var code: String
  package var retryable: Bool
  package var originalStatus: Int?
  package var location: String?

  private enum CodingKeys: String, CodingKey {
    case type, title, status, detail, code, retryable, location
    case originalStatus = "original_status"
  }
}
