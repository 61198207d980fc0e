import Idempotency

/// One mapping of the file. A schema declares each member as it reads it; members that are not declared are unknown.
final class Section {
  let value: Value
  private let members: [(name: String, value: Value)]
  private var declared: [String] = []
  /// The declared members that this version accepts here. The others are declared only to be refused by name.
  private(set) var offered: [String] = []

  init(value: Value, members: [(name: String, value: Value)]) {
    self.value = value
    self.members = members
  }

  var reader: Reader { value.reader }

  /// The same mapping without one of its members, to be read again: only the first reading's issues are reported.
  func copy(without name: String) -> Section {
    let silent = Reader(
      file: reader.file, environment: reader.environment, names: reader.names, isOffline: reader.isOffline)
    let silenced = { (value: Value) -> Value in
      Value(reader: silent, node: value.node, path: value.path, keyPosition: value.keyPosition)
    }
    let others = members.filter { $0.name != name }
    return Section(value: silenced(value), members: others.map { (name: $0.name, value: silenced($0.value)) })
  }

  /// Declares members without reading them and without offering them in error messages.
  func declare(_ names: [String]) { declared += names }

  func member(_ name: String) -> Value? {
    declare([name])
    offered.append(name)
    return self[name]
  }

  /// The value of a member, without declaring it, for rules that concern several members.
  subscript(name: String) -> Value? {
    members.first { $0.name == name }?.value
  }

  /// Whether each of these members is either absent or read without an error.
  func isSound(_ names: String...) -> Bool {
    names.allSatisfy { !(self[$0]?.hasFault ?? false) }
  }

  func refuseMissing(_ name: String, _ message: String) {
    reader.refuse(path(of: name), at: value.position, message)
  }

  /// Declares members that are valid only in another place, and refuses them.
  func refuse(_ names: [String], _ message: String) {
    declare(names)
    for member in names.compactMap({ self[$0] }) {
      reader.refuse(member.path, at: member.keyPosition, message)
    }
  }

  func refuseUndeclared() {
    for (name, member) in members where !declared.contains(name) {
      let places = MemberPlaces.of(name).map { "it belongs to \($0.asAlternatives)" }
      let near = Suggestion.nearest(to: name, in: declared).map { "did you mean \($0)?" }
      let advice =
        if name == "<<" {
          ["merge keys are not taken: write the members out, or put them in defaults"]
        } else if places != nil || near != nil {
          [places, near].compactMap(\.self)
        } else {
          ["allowed are \(offered.joined(separator: ", "))"]
        }
      reader.refuse(
        member.path, at: member.keyPosition, "unknown member; \(advice.joined(separator: "; "))")
    }
  }

  private func path(of name: String) -> String {
    value.path.isEmpty ? name : "\(value.path).\(name)"
  }
}

/// The sections that have a member of a name, for a member that is written in another one.
enum MemberPlaces {
  static func of(_ name: String) -> [String]? {
    let places = members.filter { $0.names.contains(name) }.map(\.place)
    return places.isEmpty ? nil : places
  }

  private static let members: [(place: String, names: [String])] = [
    ("the top", Settings.schema.names),
    ("listen[]", ListenSettings.schema.names),
    ("admin", AdminSettings.schema.names),
    ("upstreams.NAME", UpstreamSettings.schema.names),
    ("store", StoreSettings.schema.names),
    ("limits", LimitSettings.schema.names),
    ("log", LogSettings.schema.names),
    ("tracing", TracingSettings.schema.names),
    ("jwt", JWTSettings.schema.names),
    ("a route", RouteDraft.schema.names),
    ("a route's match", RouteMatch.schema.names),
    ("a route's key", KeyPolicy.schema.names),
  ]
}

/// Replaces references to the environment in a text: `${NAME}` and `${NAME:-default}`; `$$` stands for one `$`.
enum Interpolation {
  /// - Parameter takesNames: Whether a variable that the environment lacks counts as its own name.
  static func apply(
    to text: String, environment: [String: String], takesNames: Bool = false
  ) throws(Refusal) -> String {
    var result = ""
    var rest = Substring(text)
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      rest = rest[dollar...].dropFirst()
      switch rest.first {
      case "$":
        result += "$"
        rest = rest.dropFirst()
      case "{":
        guard let end = rest.firstIndex(of: "}") else {
          throw Refusal("has a ${ without its }; write ${NAME}, or $${ for the characters themselves")
        }
        result += try value(of: rest[..<end].dropFirst(), environment, takesNames)
        rest = rest[end...].dropFirst()
      default:
        result += "$"
      }
    }
    return result + rest
  }

  private static func value(
    of reference: Substring, _ environment: [String: String], _ takesNames: Bool
  ) throws(Refusal) -> String {
    let name = reference.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    let rest = reference.dropFirst(name.count)
    guard !name.isEmpty, !(name.first?.isNumber ?? false), rest.isEmpty || rest.hasPrefix(":-") else {
      throw Refusal("has a reference that is neither ${NAME} nor ${NAME:-default}; $${ stands for ${ itself")
    }
    // Its end would be that of the inner one.
    try require(
      !rest.contains("${"),
      "has a reference within a reference; write ${NAME:-default} with a default that is plain text")
    let value = environment[String(name)]
    if rest.isEmpty {
      guard let value = value ?? (takesNames ? String(name) : nil) else {
        throw Refusal("the environment has no \(name): set it, or write ${\(name):-default}")
      }
      return value
    }
    // As in a shell, the default also replaces an empty value.
    guard let value, !value.isEmpty else { return String(rest.dropFirst(2)) }
    return value
  }
}
