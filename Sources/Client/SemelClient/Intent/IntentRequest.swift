public import HTTPTypes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The body of an intent's request, in a form that can be sent any number of times.
public enum IntentBody: Hashable, Sendable, Codable {
  case none
  case bytes([UInt8])
  /// The path of a file, which is read for each delivery and must not change until the intent has ended.
  case file(String)
}

/// One request as a durable value: each delivery of its intent sends the same method, path, fields and bytes.
///
/// It holds no credentials. Those are applied to each delivery when it is sent (``CredentialSource``), and the key is
/// added then as well.
public struct IntentRequest: Hashable, Sendable, Codable {
  /// The method.
  public var method: HTTPRequest.Method
  /// The path with its query, as it stands in the request line: `/v1/orders?dry_run=0`. It begins with a slash.
  public var path: String
  /// The fields, without the key and without credentials.
  public var fields: HTTPFields
  /// The body.
  public var body: IntentBody

  /// A request of its parts.
  public init(method: HTTPRequest.Method, path: String, fields: HTTPFields = [:], body: IntentBody = .none) {
    self.method = method
    self.path = path
    self.fields = fields
    self.body = body
  }

  /// A POST of a JSON document. The document's members are sorted, so that equal values are equal bytes.
  public static func post(_ path: String, json: some Encodable) throws -> IntentRequest {
    try IntentRequest(method: .post, path: path, json: json)
  }

  /// A PUT of a JSON document.
  public static func put(_ path: String, json: some Encodable) throws -> IntentRequest {
    try IntentRequest(method: .put, path: path, json: json)
  }

  /// A PATCH with a JSON document.
  public static func patch(_ path: String, json: some Encodable) throws -> IntentRequest {
    try IntentRequest(method: .patch, path: path, json: json)
  }

  /// A DELETE without a body.
  public static func delete(_ path: String) -> IntentRequest {
    IntentRequest(method: .delete, path: path)
  }

  init(method: HTTPRequest.Method, path: String, json: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    self.init(
      method: method, path: path, fields: [.contentType: "application/json"],
      body: .bytes([UInt8](try encoder.encode(json))))
  }

  private enum CodingKeys: CodingKey { case method, path, fields, body }

  /// The request as it was encoded.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let name = try container.decode(String.self, forKey: .method)
    guard let method = HTTPRequest.Method(name) else {
      throw DecodingError.dataCorruptedError(
        forKey: .method, in: container, debugDescription: "\(name) is no method.")
    }
    self.method = method
    path = try container.decode(String.self, forKey: .path)
    fields = try container.decode(HTTPFields.self, forKey: .fields)
    body = try container.decode(IntentBody.self, forKey: .body)
  }

  /// The request in a form that later versions read.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(method.rawValue, forKey: .method)
    try container.encode(path, forKey: .path)
    try container.encode(fields, forKey: .fields)
    try container.encode(body, forKey: .body)
  }

  /// Whether the path stays a path behind the name of a server. `@example.org/` would make that a user's name.
  package var hasValidPath: Bool { path.hasPrefix("/") }

  /// The first field that must not be part of a stored request: credentials age, and would be stored in clear.
  package var credentialField: HTTPField.Name? {
    HTTPField.Name.credentials.first { fields.contains($0) }
  }
}
