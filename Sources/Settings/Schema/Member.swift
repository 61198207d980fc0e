import Idempotency

/// The effect of another value in a file that is read again.
enum Reload: String, Sendable { case live, restart }

/// One member of a section, with its name, values, effect at a reload and help. `Schema.defaults` has its default.
struct Member<Root: Sendable>: Sendable {
  let name: String
  let values: String
  let help: String
  private(set) var reload = Reload.live
  /// The case in which requests find their records by the member; `nil` for never, empty for always.
  private(set) var identity: String?
  /// The default in words, where it is not that of `Schema.defaults`.
  private(set) var standard: String?
  /// The refusal of a section without the member.
  private(set) var missing: String?
  /// The kind of section that alone has the member; `nil` for all.
  private(set) var kind: String?
  /// Whether a file may have the member. Others are only shown.
  private(set) var isReadable = true
  /// The members of a section, for the reference.
  private(set) var parts: [ReferenceRow] = []

  private var readValue: @Sendable (inout Root, Value) -> Void
  private var afterwards: @Sendable (inout Root, Section) -> Void = { _, _ in }
  private var show: @Sendable (Root) -> Shown?
  private let isSame: @Sendable (Root, Root) -> Bool
  private var adoptValue: @Sendable (inout Root, Root) -> Void
  private var partChanges: @Sendable (Root, Root) -> [String] = { _, _ in [] }

  init<Content: Equatable & Sendable>(
    _ name: String, _ path: any WritableKeyPath<Root, Content> & Sendable, values: String, _ help: String,
    show: @escaping @Sendable (Content) -> Shown?, read: @escaping @Sendable (inout Root, Value) -> Void
  ) {
    (self.name, self.values, self.help) = (name, values, help)
    readValue = read
    self.show = { show($0[keyPath: path]) }
    isSame = { $0[keyPath: path] == $1[keyPath: path] }
    adoptValue = { $0[keyPath: path] = $1[keyPath: path] }
  }

  /// A member in a notation. Without one in the file, the old content stays.
  init<Content: Equatable & Sendable>(
    _ name: String, _ path: any WritableKeyPath<Root, Content> & Sendable, _ notation: Notation<Content>,
    _ help: String
  ) {
    self.init(name, path, values: notation.values, help, show: notation.show) { root, value in
      if let content = notation.read(value) { root[keyPath: path] = content }
    }
  }

  init<Content: Equatable & Sendable>(
    _ name: String, _ path: any WritableKeyPath<Root, Content?> & Sendable, _ notation: Notation<Content>,
    _ help: String
  ) {
    self.init(name, path, notation.optional, help)
  }

  /// What is shown beside the members of a file.
  init(shown name: String, _ show: @escaping @Sendable (Root) -> Shown?) {
    (self.name, values, help) = (name, "", "")
    isReadable = false
    readValue = { _, _ in }
    self.show = show
    isSame = { _, _ in true }
    adoptValue = { _, _ in }
  }
}

extension Member {
  /// A section whose members have defaults.
  static func section<Part: Equatable>(
    _ name: String, _ path: any WritableKeyPath<Root, Part> & Sendable, _ schema: Schema<Part>,
    _ help: String = ""
  ) -> Member {
    var member = Member(name, path, values: "a section", help, show: { schema.shown($0) }) { root, value in
      value.section { schema.read($0, into: &root[keyPath: path]) }
    }
    member.adoptValue = { schema.adopt($1[keyPath: path], into: &$0[keyPath: path]) }
    member.partChanges = {
      schema.changes(from: $0[keyPath: path], to: $1[keyPath: path]).map { "\(name).\($0)" }
    }
    member.parts = schema.rows.map { $0.within(name) }
    return member
  }

  /// A section that may be absent.
  static func optional<Part: Equatable>(
    _ name: String, _ path: any WritableKeyPath<Root, Part?> & Sendable, _ schema: Schema<Part>,
    _ help: String = ""
  ) -> Member {
    var member = Member(name, path, values: "a section", help, show: { $0.map(schema.shown) }) {
      root, value in
      value.section { section in
        var part = root[keyPath: path] ?? schema.defaults
        schema.read(section, into: &part)
        root[keyPath: path] = part
      }
    }
    member.partChanges = { old, new in
      guard let old = old[keyPath: path], let new = new[keyPath: path] else { return [] }
      return schema.changes(from: old, to: new).map { "\(name).\($0)" }
    }
    member.parts = schema.rows.map { $0.within(name) }
    return member
  }

  /// A list of sections, at least one.
  static func sections<Part: Equatable>(
    _ name: String, _ path: any WritableKeyPath<Root, [Part]> & Sendable, _ schema: Schema<Part>,
    such example: String
  ) -> Member {
    let show: @Sendable ([Part]) -> Shown? = { .list($0.map(schema.shown)) }
    var member = Member(name, path, values: "a list", "", show: show) { root, value in
      guard let items = value.items("a list such as \(example)") else { return }
      if items.isEmpty { value.refuse("must name an address, such as \(example)") }
      root[keyPath: path] = items.map { item in
        var part = schema.defaults
        item.section { schema.read($0, into: &part) }
        return part
      }
    }
    member.partChanges = { old, new in
      let (old, new) = (old[keyPath: path], new[keyPath: path])
      guard old.count == new.count else { return [] }
      return new.indices.flatMap { index in
        schema.changes(from: old[index], to: new[index]).map { "\(name)[\(index)].\($0)" }
      }
    }
    member.parts = schema.rows.map { $0.within("\(name)[]") }
    return member
  }

  private func with(_ change: (inout Member) -> Void) -> Member {
    var member = self
    change(&member)
    return member
  }

  /// The same member, of which another value needs a restart.
  var restart: Member {
    with { member in
      member.reload = .restart
      for index in parts.indices { member.parts[index].reload = .restart }
    }
  }

  func identity(_ condition: String = "") -> Member { with { $0.identity = condition } }

  func standard(_ words: String) -> Member { with { $0.standard = words } }

  func required(_ message: String) -> Member {
    with { ($0.missing, $0.standard) = (message, "required") }
  }

  func only(_ kind: String) -> Member { with { $0.kind = kind } }

  /// The same member, after which `body` runs, whether a file has the member or not.
  func then(_ body: @escaping @Sendable (inout Root, Section) -> Void) -> Member {
    with { $0.afterwards = body }
  }

  func parts(_ rows: [ReferenceRow], within section: String? = nil) -> Member {
    with { $0.parts = rows.map { $0.within(section ?? name) } }
  }

  func showing(_ show: @escaping @Sendable (Root) -> Shown?) -> Member { with { $0.show = show } }

  func read(_ value: Value, into root: inout Root) { readValue(&root, value) }

  func finish(_ section: Section, _ root: inout Root) { afterwards(&root, section) }

  func shown(_ root: Root) -> Shown? { show(root) }

  /// The paths of what differs and cannot change before a restart.
  func changes(from old: Root, to new: Root) -> [String] {
    let parts = partChanges(old, new)
    return parts.isEmpty && reload == .restart && !isSame(old, new) ? [name] : parts
  }

  /// Takes what may change live from another document.
  func adopt(_ other: Root, into root: inout Root) {
    if reload == .live { adoptValue(&root, other) }
  }
}
