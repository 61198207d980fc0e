/// What a payload's fingerprint is made of. A record names the recipe of its fingerprint, and a comparison makes the
/// newcomer's fingerprint by that one: neither an upgrade nor a changed setting makes a false mismatch.
package struct Recipe: Hashable, Sendable {
  /// How the body enters.
  package enum Body: String, Sendable, CaseIterable { case auto, raw, none }

  /// The version of the algorithm that this build makes.
  package static let currentVersion = 1

  package let version: Int
  package let body: Body
  /// Names of request fields that enter, in lower case, in the order of the setting.
  package let headers: [String]
  /// JSON pointers (RFC 6901) of members that stay out.
  package let ignore: [String]
  /// The whole recipe as a record keeps it, such as `1;auto`; `init(text:)` reads it.
  package let text: String

  package init(
    version: Int = Recipe.currentVersion, body: Body = .auto, headers: [String] = [], ignore: [String] = []
  ) {
    self.version = version
    self.body = body
    self.headers = headers
    self.ignore = ignore
    self.text = Self.text(version: version, body: body, headers: headers, ignore: ignore)
  }
}

extension Recipe {
  /// Field names and pointers hold neither `;` nor `,` once these, `%` and the line's end are percent-encoded.
  private static func text(version: Int, body: Body, headers: [String], ignore: [String]) -> String {
    var text = "\(version);\(body.rawValue)"
    if !headers.isEmpty { text += ";h=" + headers.map(escaped).joined(separator: ",") }
    if !ignore.isEmpty { text += ";i=" + ignore.map(escaped).joined(separator: ",") }
    return text
  }

  private static func escaped(_ part: String) -> String {
    part.utf8.reduce(into: "") { text, byte in
      switch byte {
      case 0x21...0x7E where byte != 0x25 && byte != 0x2C && byte != 0x3B:
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let hex = String(byte, radix: 16, uppercase: true)
        text += hex.utf8.count == 1 ? "%0\(hex)" : "%\(hex)"
      }
    }
  }

  private static func unescaped(_ part: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = part.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == 0x25 else {
        bytes.append(byte)
        continue
      }
      guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else { return nil }
      rest = rest.dropFirst(2)
      bytes.append(value)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Reads what `text` holds; `nil` for what no version of Semel wrote.
  package init?(text: String) {
    let parts = text.split(separator: ";", omittingEmptySubsequences: false)
    guard parts.count >= 2, let version = Int(parts[0]), let body = Body(rawValue: String(parts[1])) else {
      return nil
    }
    var headers: [String] = []
    var ignore: [String] = []
    for part in parts.dropFirst(2) {
      let list = part.dropFirst(2).split(separator: ",").map(Self.unescaped)
      guard list.allSatisfy({ $0 != nil }) else { return nil }
      switch part.prefix(2) {
      case "h=": headers = list.compactMap(\.self)
      case "i=": ignore = list.compactMap(\.self)
      default: return nil
      }
    }
    self.init(version: version, body: body, headers: headers, ignore: ignore)
  }
}

/// SHA-256 over the payload's parts, and the recipe by which it was made.
package struct Fingerprint: Hashable, Sendable {
  package var recipe: Recipe
  package var digest: Digest256

  package init(recipe: Recipe, digest: Digest256) {
    self.recipe = recipe
    self.digest = digest
  }
}
