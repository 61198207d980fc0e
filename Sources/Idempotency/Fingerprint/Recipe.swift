import Wire

/// The specification of a payload's fingerprint.
///
/// A record names the recipe of its fingerprint, and a comparison makes the new request's fingerprint with that recipe,
/// so that neither an upgrade nor a changed setting causes a false mismatch. The value is one reference wide, since
/// every claim contains one.
public struct Recipe: Sendable {
  /// The treatment of the body.
  public enum Body: String, Sendable, CaseIterable { case auto, raw, none }

  /// The version of the algorithm. A version that records may still name stays for ever; a changed algorithm is a new
  /// version.
  public enum Version: Int, Sendable, CaseIterable {
    case one = 1
    case two

    /// The version for new records.
    public static let current = Version.two
  }

  /// The limit of a content in `contentLimit` that a recipe's text does not name: that of bodies by default.
  public static let defaultContentLimit = 1 << 20

  private final class Contents: Sendable {
    let version: Version
    let body: Body
    let headers: [String]
    let ignore: [PayloadPart]
    let only: [PayloadPart]
    let contentLimit: Int
    let selection: PayloadSelection
    /// Whether the first version knows all parts that are named.
    let isPlain: Bool
    let text: String
    /// The digests of one payload's members, and the recipe without them; `nil` for both of any other recipe.
    let members: MemberDigests?
    let plain: Contents?

    init(
      version: Version, body: Body, headers: [String], ignore: [PayloadPart], only: [PayloadPart],
      contentLimit: Int
    ) {
      self.version = version
      self.body = body
      self.headers = headers
      self.ignore = ignore
      self.only = only
      // Other recipes undo no coding.
      let isLimited = version != .one && body == .auto
      self.contentLimit = isLimited ? contentLimit : Recipe.defaultContentLimit
      selection = PayloadSelection(without: ignore, only: only)
      isPlain = only.isEmpty && ignore.allSatisfy { $0.plainPointer != nil }
      text = Recipe.text(
        version: version, body: body, headers: headers, ignore: ignore, only: only,
        contentLimit: self.contentLimit)
      members = nil
      plain = nil
    }

    init(_ plain: Contents, explaining members: MemberDigests) {
      (version, body, headers) = (plain.version, plain.body, plain.headers)
      (ignore, only, selection) = (plain.ignore, plain.only, plain.selection)
      isPlain = plain.isPlain
      contentLimit = plain.contentLimit
      text = plain.text + ";m=" + members.text
      self.members = members
      self.plain = plain
    }
  }

  private let contents: Contents

  private init(_ contents: Contents) { self.contents = contents }

  public init(
    version: Version = .current, body: Body = .auto, headers: [String] = [], ignore: [PayloadPart] = [],
    only: [PayloadPart] = [], contentLimit: Int = Recipe.defaultContentLimit
  ) {
    contents = Contents(
      version: version, body: body, headers: headers, ignore: ignore, only: only, contentLimit: contentLimit)
  }

  public var version: Version { contents.version }
  public var body: Body { contents.body }
  /// The names of the request fields that enter the fingerprint, in lower case, in the order of the setting.
  public var headers: [String] { contents.headers }
  /// The parts that are left out. Of JSON, only members of objects can be left out; the path to them may lead through
  /// arrays.
  public var ignore: [PayloadPart] { contents.ignore }
  /// The parts that alone count; empty for all but those in `ignore`. One of the two lists is empty.
  public var only: [PayloadPart] { contents.only }
  /// The maximum size of a compressed body's content, in bytes. The bytes of a body with a larger one are its payload.
  public var contentLimit: Int { contents.contentLimit }
  /// The whole recipe as text for a record, such as `2;auto`, which `init(text:)` parses.
  public var text: String { contents.text }
  /// The digests of the payload's members, with which a record explains how another payload differs. They are no part
  /// of the specification, and change no fingerprint.
  public var members: MemberDigests? { contents.members }
  /// The recipe without digests of members.
  public var plain: Recipe { contents.plain.map(Recipe.init) ?? self }

  /// The recipe with the digests of a payload's members.
  public func explaining(_ members: MemberDigests) -> Recipe {
    Recipe(Contents(contents.plain ?? contents, explaining: members))
  }

  /// The recipe that undoes compression up to another size.
  public func limited(to contentLimit: Int) -> Recipe {
    Recipe(
      version: version, body: body, headers: headers, ignore: ignore, only: only, contentLimit: contentLimit)
  }

  /// The recipe with other parts left out, or with others that alone count.
  public func selecting(ignore: [PayloadPart] = [], only: [PayloadPart] = []) -> Recipe {
    Recipe(
      version: version, body: body, headers: headers, ignore: ignore, only: only, contentLimit: contentLimit)
  }

  /// The recipe by which a payload is its own key. Another digest is another record, and a retry would not find that of
  /// its first delivery. So it is of the first version for ever, and of the second where parts are named that the first
  /// does not know; it undoes compression up to one size, whatever bodies a route takes.
  public var ofKeys: Recipe {
    let version: Version = contents.isPlain ? .one : .two
    if self.version == version, contentLimit == Self.defaultContentLimit { return plain }
    return Recipe(version: version, body: body, headers: headers, ignore: ignore, only: only)
  }

  /// The parts that count, prepared for reading.
  var selection: PayloadSelection { contents.selection }

  /// Whether nothing of a body counts.
  public var leavesOutBody: Bool { body == .none || body == .auto && selection.leavesOutBody }

  /// Whether a part of a payload that can be read enters no fingerprint.
  public func leavesOut(_ part: PayloadPart) -> Bool {
    if part.isInBody, leavesOutBody { return true }
    guard !only.isEmpty else { return ignore.contains { $0.covers(part) } }
    let alike = only.filter { $0.isOfKind(of: part) }
    return !alike.isEmpty && !alike.contains { $0.covers(part) || part.covers($0) }
  }
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
  /// The text of a recipe. Field names and pointers contain neither `;` nor `,`, because these, `%` and all bytes that
  /// are not visible are percent-encoded.
  private static func text(
    version: Version, body: Body, headers: [String], ignore: [PayloadPart], only: [PayloadPart],
    contentLimit: Int
  ) -> String {
    var text = "\(version.rawValue);\(body.rawValue)"
    let plain = ignore.compactMap(\.plainPointer)
    // An earlier version that does not know the others must not take the recipe for one without them.
    let others = ignore.filter { $0.plainPointer == nil }.map(\.text)
    let lists = [("h", headers), ("i", plain), ("x", others), ("o", only.map(\.text))]
    for (name, list) in lists where !list.isEmpty {
      text += ";\(name)=" + list.map(escaped).joined(separator: ",")
    }
    if contentLimit != defaultContentLimit { text += ";z=\(contentLimit)" }
    return text
  }

  private static func escaped(_ part: String) -> String {
    part.utf8.reduce(into: "") { text, byte in
      switch byte {
      case 0x21...0x7E where byte != 0x25 && byte != 0x2C && byte != 0x3B:
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        text += "%"
        for digit in [byte >> 4, byte & 15] {
          text.unicodeScalars.append(Unicode.Scalar(ASCII.hexDigit(digit)))
        }
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
      guard let high = rest.popFirst().flatMap(ASCII.hexValue),
        let low = rest.popFirst().flatMap(ASCII.hexValue)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Parses the text of a recipe; `nil` for a recipe that this build did not write and cannot use.
  public init?(text: String) {
    let parts = text.split(separator: ";", omittingEmptySubsequences: false)
    guard parts.count >= 2, let version = Int(parts[0]).flatMap(Version.init),
      let body = Body(rawValue: String(parts[1]))
    else { return nil }
    var headers: [String] = []
    var (ignore, only): ([PayloadPart], [PayloadPart]) = ([], [])
    var contentLimit = Self.defaultContentLimit
    var members: MemberDigests?
    for part in parts.dropFirst(2) {
      if part.hasPrefix("z=") {
        guard let limit = Int(part.dropFirst(2)), limit >= 0 else { return nil }
        contentLimit = limit
        continue
      }
      if part.hasPrefix("m=") {
        guard let read = MemberDigests(text: part.dropFirst(2)) else { return nil }
        members = read
        continue
      }
      let list = part.dropFirst(2).split(separator: ",", omittingEmptySubsequences: false).map(Self.unescaped)
      guard list.allSatisfy({ $0 != nil }) else { return nil }
      switch part.prefix(2) {
      case "h=": headers = list.compactMap(\.self)
      case "i=": ignore += list.compactMap(\.self).map(PayloadPart.init(plainPointer:))
      case "x=": ignore += list.compactMap { $0.flatMap(PayloadPart.init(text:)) }
      case "o=": only = list.compactMap { $0.flatMap(PayloadPart.init(text:)) }
      default: return nil
      }
    }
    self.init(
      version: version, body: body, headers: headers, ignore: ignore, only: only, contentLimit: contentLimit)
    guard version != .one || contents.isPlain else { return nil }
    if let members { self = explaining(members) }
    // Only the exact spelling that would be written is accepted.
    guard self.text == text else { return nil }
  }
}
