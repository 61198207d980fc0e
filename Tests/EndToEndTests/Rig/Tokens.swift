import Foundation
import TestSupport

/// Keys, and tokens that a library of others has signed with them.
struct Tokens: Decodable {
  /// The public keys by name, as members of a JWK set.
  let keys: [String: JWK]
  /// The tokens in the order in which they were wanted.
  let tokens: [String]

  struct JWK: Codable {
    var kty: String
    var kid: String
    var use: String
    var n: String?
    var e: String?
    var crv: String?
    var x: String?
    var y: String?
  }

  /// Makes keys and tokens.
  ///
  /// - Parameters:
  ///   - keys: The type of each key by its name: `RSA`, `EC` or `OKP`.
  ///   - tokens: The tokens as JSON, see `tokens.py`.
  init(keys: [String: String], _ tokens: [String]) async throws {
    let types = keys.map { "\"\($0)\":\"\($1)\"" }.joined(separator: ",")
    let wanted = "{\"keys\":{\(types)},\"tokens\":[\(tokens.joined(separator: ","))]}"
    self = try await Python.run("tokens", [wanted])
  }

  /// A JWK set of these keys.
  func set(of names: String...) throws -> String {
    struct Document: Encodable { let keys: [JWK] }
    let data = try JSONEncoder().encode(Document(keys: names.compactMap { keys[$0] }))
    return String(decoding: data, as: UTF8.self)
  }
}
