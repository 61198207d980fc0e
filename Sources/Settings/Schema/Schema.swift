/// The members of one kind of section, in the order in which they are read, shown and described. All that is done with
/// settings goes by it, so that a new member is one entry.
struct Schema<Root: Sendable>: Sendable {
  /// A section that sets nothing.
  let defaults: Root
  private(set) var members: [Member<Root>]
  /// The members of earlier versions, each with the reason for which it is refused.
  private let removed: [String: String]
  /// The reason why a section does not take one of the members; `nil` if it does.
  private let misplaced: @Sendable (Root, Member<Root>) -> String?
  /// The members by which that is decided. With an error in one of them, no other is reported as misplaced or missing.
  private let deciding: [String]
  private let check: @Sendable (inout Root, Section) -> Void

  /// - Parameter check: The rules between members, which runs after all of them are read.
  init(
    _ defaults: Root, removed: [String: String] = [:], deciding: [String] = [],
    misplaced: @escaping @Sendable (Root, Member<Root>) -> String? = { _, _ in nil },
    check: @escaping @Sendable (inout Root, Section) -> Void = { _, _ in },
    @MemberList<Root> _ members: () -> [Member<Root>]
  ) {
    self.defaults = defaults
    self.members = members()
    self.removed = removed
    self.deciding = deciding
    self.misplaced = misplaced
    self.check = check
  }

  func read(_ section: Section, into root: inout Root) {
    for member in members where member.isReadable {
      let isDecided = members.allSatisfy { other in
        !deciding.contains(other.name) || section.isSound(other.name) || misplaced(root, other) != nil
      }
      if let reason = misplaced(root, member) {
        if isDecided { section.refuse([member.name], reason) } else { section.declare([member.name]) }
      } else if let value = section.member(member.name) {
        member.read(value, into: &root)
      } else if let missing = member.missing, isDecided {
        section.refuseMissing(member.name, missing)
      }
      member.finish(section, &root)
    }
    for (name, reason) in removed where section[name] != nil { section.refuse([name], reason) }
    check(&root, section)
  }

  func shown(_ root: Root) -> Shown { .members(shownMembers(root)) }

  func shownMembers(_ root: Root) -> [Shown.Member] {
    members(in: root).map { Shown.Member($0.name, $0.shown(root)) }
  }

  /// The paths of the members that differ and cannot change before a restart.
  func changes(from old: Root, to new: Root) -> [String] {
    members(in: old).filter { misplaced(new, $0) == nil }.flatMap { $0.changes(from: old, to: new) }
  }

  private func members(in root: Root) -> [Member<Root>] {
    members.filter { misplaced(root, $0) == nil }
  }

  /// Takes what may change live from another document.
  func adopt(_ other: Root, into root: inout Root) {
    for member in members { member.adopt(other, into: &root) }
  }

  /// The names of the members that a file may have.
  var names: [String] { members.filter(\.isReadable).map(\.name) }

  /// The same schema, of which no member changes live.
  var restart: Schema {
    var schema = self
    schema.members = members.map { $0.isReadable ? $0.restart : $0 }
    return schema
  }
}

/// A list of members, one a line. Each is type-checked by itself.
@resultBuilder
enum MemberList<Root: Sendable> {
  static func buildExpression(_ member: Member<Root>) -> Member<Root> { member }
  static func buildBlock(_ members: Member<Root>...) -> [Member<Root>] { members }
}
