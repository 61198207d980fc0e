/// A request as the backend got it.
package struct BackendRequest: Sendable {
  package var method: String
  package var target: String
  package var fields: [(name: String, value: String)]
  /// Its first 4 MiB at most.
  package var body: [UInt8] = []
  /// All of it.
  package var bodyLength = 0
  /// The number of the request at this backend, from 1 on.
  package var number = 0
  /// The number of the connection on which it came, from 1 on.
  package var connection = 0

  package var path: String { String(target.prefix { $0 != "?" }) }
  package var text: String { String(decoding: body, as: UTF8.self) }
  package var requestID: String? { self["Idempotency-Request-Id"] }
  package var attempt: String? { self["Idempotency-Attempt"] }

  /// The values of all fields of this name, `nil` where there is none.
  package subscript(name: String) -> String? {
    let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: " AND ")
  }
}
