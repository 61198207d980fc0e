/// What a payload's fingerprint is made of. A record names the recipe of its fingerprint, and a comparison
/// makes the newcomer's fingerprint by that one: neither an upgrade nor a changed setting makes a false
/// mismatch.
///
/// One reference wide, since every claim carries one.
public struct Recipe: Sendable {
  /// How the body enters.
  public enum Body: String, Sendable, CaseIterable { case auto, raw, none }

  /// The algorithm. One that records may still name stays for ever; a changed one is a new version.
  public enum Version: Int, Sendable, CaseIterable {
    case one = 1

    /// The version of new records.
    public static let current = Version.one
  }

  private final class Contents: Sendable {
    let version: Version
    let body: Body
    let headers: [String]
    let ignore: [String]
    let leftOut: PointerTree
    let text: String

    init(version: Version, body: Body, headers: [String], ignore: [String]) {
      self.version = version
      self.body = body
      self.headers = headers
      self.ignore = ignore
      leftOut = PointerTree(ignore)
      text = Recipe.text(version: version, body: body, headers: headers, ignore: ignore)
    }
  }

  private let contents: Contents

  public init(
    version: Version = .current, body: Body = .auto, headers: [String] = [], ignore: [String] = []
  ) {
    contents = Contents(version: version, body: body, headers: headers, ignore: ignore)
  }

  public var version: Version { contents.version }
  public var body: Body { contents.body }
  /// Names of request fields that enter, in lower case, in the order of the setting.
  public var headers: [String] { contents.headers }
  /// JSON pointers (RFC 6901) of members that stay out: members of objects alone, reached also through
  /// arrays.
  public var ignore: [String] { contents.ignore }
  /// The whole recipe as a record keeps it, such as `1;auto`; `init(text:)` reads it.
  public var text: String { contents.text }
  /// `ignore`, ready to be walked.
  var leftOut: PointerTree { contents.leftOut }
}

extension Recipe: CustomStringConvertible {
  public var description: String { text }
}

extension Recipe: Hashable {
  public static func == (left: Recipe, right: Recipe) -> Bool {
    left.contents === right.contents || left.text == right.text
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension Recipe {
  /// Field names and pointers hold neither `;` nor `,` once these, `%` and what is not visible are
  /// percent-encoded.
  private static func text(version: Version, body: Body, headers: [String], ignore: [String]) -> String {
    var text = "\(version.rawValue);\(body.rawValue)"
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
      guard let high = rest.popFirst().flatMap(Hexadecimal.value),
        let low = rest.popFirst().flatMap(Hexadecimal.value)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Reads what `text` holds; `nil` for what this build did not write and cannot make.
  public init?(text: String) {
    let parts = text.split(separator: ";", omittingEmptySubsequences: false)
    guard parts.count >= 2, let version = Int(parts[0]).flatMap(Version.init),
      let body = Body(rawValue: String(parts[1]))
    else { return nil }
    var headers: [String] = []
    var ignore: [String] = []
    for part in parts.dropFirst(2) {
      let list = part.dropFirst(2).split(separator: ",", omittingEmptySubsequences: false).map(Self.unescaped)
      guard list.allSatisfy({ $0 != nil }) else { return nil }
      switch part.prefix(2) {
      case "h=": headers = list.compactMap(\.self)
      case "i=": ignore = list.compactMap(\.self)
      default: return nil
      }
    }
    self.init(version: version, body: body, headers: headers, ignore: ignore)
    // Only the one spelling that is written is read.
    guard self.text == text else { return nil }
  }
}
