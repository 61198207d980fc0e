import SemelClient

/// The replacement of marks in a request with values from earlier responses.
enum ValueSubstitution {
  static func mark(_ name: String) -> String { "{semel:\(name)}" }

  /// The request with each mark replaced. `values` are JSON literals by the names of their marks.
  static func apply(_ values: [String: String], to request: IntentRequest) -> IntentRequest {
    var request = request
    for (name, literal) in values {
      let text = JSONValue(document: [UInt8](literal.utf8))?.text ?? literal
      request.path = request.path.replacing(mark(name), with: text.percentEncodedForQuery)
      guard case .bytes(let bytes) = request.body else { continue }
      let inner = literal.hasPrefix("\"") ? String(literal.dropFirst().dropLast()) : literal
      let body = String(decoding: bytes, as: UTF8.self)
        .replacing("\"\(mark(name))\"", with: literal)
        .replacing(mark(name), with: inner)
      request.body = .bytes([UInt8](body.utf8))
    }
    return request
  }
}
