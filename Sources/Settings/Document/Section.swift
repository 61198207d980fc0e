import Yams

/// One mapping of the file, read member by member.
///
/// Every accessor declares the member it reads, and writes only what the file says: the default is what
/// stands in the target already. So each member is known in one place, and what nobody declared is unknown.
final class Section {
  let value: Value
  private let members: [(name: String, value: Value)]
  private var declared: [String] = []
  /// Those of the declared that this version takes here; the others are known only to be refused by name.
  private var offered: [String] = []

  init(value: Value, members: [(name: String, value: Value)]) {
    self.value = value
    self.members = members
  }

  var reader: Reader { value.reader }

  /// Declares members without reading or offering them.
  func declare(_ names: [String]) { declared += names }

  /// Declares a member and gives what stands there.
  func member(_ name: String) -> Value? {
    declare([name])
    offered.append(name)
    return self[name]
  }

  /// What the file says for a member, without declaring it: for rules that concern several members.
  subscript(name: String) -> Value? {
    members.first { $0.name == name }?.value
  }

  /// Refuses a mapping that lacks a member.
  func refuseMissing(_ name: String, _ message: String) {
    reader.refuse(path(of: name), at: value.position, message)
  }

  /// Declares a member of the contract that this version does not build; only its neutral value is taken.
  func refuseUnsupported(_ name: String, neutral: String? = nil) {
    declare([name])
    guard let member = self[name], neutral == nil || member.neutralText != neutral else { return }
    let remedy = neutral.map { "write \($0), or take it out" } ?? "take it out"
    reader.refuse(member.path, at: member.keyPosition, "not supported yet; \(remedy)")
  }

  /// Declares members that have a meaning only elsewhere, and refuses them.
  func refuse(_ names: [String], _ message: String) {
    declare(names)
    for member in names.compactMap({ self[$0] }) {
      reader.refuse(member.path, at: member.keyPosition, message)
    }
  }

  func refuseUndeclared() {
    for (name, member) in members where !declared.contains(name) {
      let allowed =
        if let near = Suggestion.nearest(to: name, in: declared) {
          "did you mean \(near)?"
        } else {
          "allowed are \(offered.joined(separator: ", "))"
        }
      reader.refuse(member.path, at: member.keyPosition, "unknown member; \(allowed)")
    }
  }

  private func path(of name: String) -> String {
    value.path.isEmpty ? name : "\(value.path).\(name)"
  }
}

extension Value {
  /// The text of a single value, and `[]` for an empty list; `nil` for all else.
  fileprivate var neutralText: String? {
    switch node {
    case .scalar(let scalar): try? Interpolation.apply(to: scalar.string, environment: reader.environment)
    case .sequence(let sequence) where sequence.isEmpty: "[]"
    default: nil
    }
  }
}
