import Wire

/// A part of a payload by its place, as settings name it: to leave it out of fingerprints, or to count it alone.
public enum PayloadPart: Hashable, Sendable {
  /// The value at a JSON pointer (RFC 6901), in which `*` stands for all elements of an array. In an object it is the
  /// name of a member.
  case json(String)
  /// The value at a JSON pointer whose `*` is the name of a member alone. Records of earlier versions have it.
  case literal(String)
  /// The parameters of the query with this name.
  case query(String)
  /// The fields of a form with this name: pairs of an `application/x-www-form-urlencoded` body, or parts of a
  /// `multipart/form-data` body that are no files.
  case form(String)
  /// The parts of a `multipart/form-data` body with this name, files or not.
  case part(String)
  /// The names of the files in a `multipart/form-data` body.
  case fileNames

  /// Reads the notation of the configuration; `nil` for a text in another one.
  public init?(text: String) {
    if text.hasPrefix("/") {
      guard JSONPointer(text) != nil else { return nil }
      self = .json(text)
      return
    }
    if text == Self.fileNames.text {
      self = .fileNames
      return
    }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty else { return nil }
    switch parts[0] {
    case "query": self = .query(String(parts[1]))
    case "form": self = .form(String(parts[1]))
    case "part": self = .part(String(parts[1]))
    default: return nil
    }
  }

  /// The part in the notation of the configuration.
  public var text: String {
    switch self {
    case .json(let pointer), .literal(let pointer): pointer
    case .query(let name): "query:\(name)"
    case .form(let name): "form:\(name)"
    case .part(let name): "part:\(name)"
    case .fileNames: "part-filename"
    }
  }

  /// Whether the part is in the body.
  public var isInBody: Bool {
    if case .query = self { false } else { true }
  }

  /// The pointer of a part that is in JSON, and whether its `*` stands for elements.
  var pointer: (place: JSONPointer, hasWildcards: Bool)? {
    switch self {
    case .json(let text): JSONPointer(text).map { ($0, $0.segments.contains(where: \.isStar)) }
    case .literal(let text): JSONPointer(text).map { ($0, false) }
    case .query, .form, .part, .fileNames: nil
    }
  }

  /// The pointer's text if earlier versions knew the part: a pointer without `*`, or one whose `*` is a name.
  var plainPointer: String? {
    switch self {
    case .json(let text): pointer?.hasWildcards == true ? nil : text
    case .literal(let text): text
    case .query, .form, .part, .fileNames: nil
    }
  }

  /// The part that a pointer of an earlier version's record names.
  init(plainPointer text: String) {
    let hasStar = JSONPointer(text)?.segments.contains(where: \.isStar) ?? false
    self = hasStar ? .literal(text) : .json(text)
  }
}

extension PayloadPart {
  /// The pointers that lead through one array both by `*` and by an index, so that an element would be named twice.
  public static func clashing(_ parts: [PayloadPart]) -> (PayloadPart, PayloadPart)? {
    let pointers = parts.compactMap { part in part.pointer.map { (part, $0.place.segments) } }
    for (index, (first, own)) in pointers.enumerated() {
      for (second, other) in pointers.dropFirst(index + 1) {
        let place = zip(own, other).first { $0 != $1 }
        guard let (left, right) = place else { continue }
        if left.isStar && right.index != nil || right.isStar && left.index != nil { return (first, second) }
      }
    }
    return nil
  }
}

/// The parts of a payload that enter a fingerprint: all but some, or some alone.
struct PayloadSelection: Sendable {
  let members: PointerTree
  let query: PairSelection
  let form: PairSelection
  let parts: PartSelection
  /// Whether parts are named, and none of them is in the body, so that nothing of it counts.
  let leavesOutBody: Bool
  /// Whether members of JSON are named, so that any body is read as JSON that is some by its text.
  let readsAnyType: Bool

  /// - Parameters:
  ///   - ignored: The parts that do not count.
  ///   - only: The parts that alone count; empty for all. What they name no part of counts as a whole: the query, or a
  ///     body of another kind.
  init(without ignored: [PayloadPart], only: [PayloadPart]) {
    let selects = !only.isEmpty
    let parts = selects ? only : ignored
    var (queries, fields, names): ([String], [String], [String]) = ([], [], [])
    for part in parts {
      switch part {
      case .query(let name): queries.append(name)
      case .form(let name): fields.append(name)
      case .part(let name): names.append(name)
      case .json, .literal, .fileNames: break
      }
    }
    members = PointerTree(parts, selects: selects)
    query = PairSelection(queries, selects: selects)
    form = PairSelection(fields, selects: selects)
    self.parts = PartSelection(
      fields: fields, parts: names, selects: selects, dropsFileNames: ignored.contains(.fileNames))
    leavesOutBody = selects && !only.contains(where: \.isInBody)
    readsAnyType = parts.contains { $0.isJSON }
  }
}

extension PayloadPart {
  /// Whether the other part is looked for in the same kind of place.
  func isOfKind(of other: PayloadPart) -> Bool {
    switch (self, other) {
    case (.json, .json), (.json, .literal), (.literal, .json), (.literal, .literal): true
    case (.query, .query), (.form, .form), (.part, .part), (.fileNames, .fileNames): true
    default: false
    }
  }

  /// Whether the other part is this one, or within it.
  func covers(_ other: PayloadPart) -> Bool {
    guard let own = pointer, let inner = other.pointer else { return self == other }
    let (outer, whole) = (own.place.segments, inner.place.segments)
    return outer.count <= whole.count
      && zip(outer, whole).allSatisfy { $0 == $1 || own.hasWildcards && $0.isStar && $1.index != nil }
  }

  fileprivate var isJSON: Bool {
    switch self {
    case .json, .literal: true
    case .query, .form, .part, .fileNames: false
    }
  }
}

/// The pairs of a query or a form that count.
struct PairSelection: Sendable {
  /// The decoded names of the pairs that do not count, or of those that alone count; empty if all count.
  private let names: [String]
  private let selects: Bool

  static let all = PairSelection([], selects: false)

  init(_ names: [String], selects: Bool) {
    self.names = names
    self.selects = selects
  }

  var isAll: Bool { names.isEmpty }

  /// Whether a pair counts. One that some readers divide at a semicolon counts in any case, since they may find another
  /// pair in it.
  @inline(__always)
  func counts(
    _ pair: FormPairs.Pair, of text: UnsafeRawBufferPointer, as reading: PercentText.Reading
  ) -> Bool {
    isAll || isCounted(pair, of: text, as: reading == .form ? .form : .decoded)
  }

  @inline(never)
  private func isCounted(
    _ pair: FormPairs.Pair, of text: UnsafeRawBufferPointer, as reading: PercentText.Reading
  ) -> Bool {
    let name = UnsafeRawBufferPointer(rebasing: text[pair.name])
    // A name that only some readers take for one that counts does so, too.
    let isNamed = names.contains { wanted in
      PercentText(name, as: reading).reads(wanted)
        || selects && FormPairs.reads(PercentText(name, as: .form), roughlyAs: wanted)
    }
    return isNamed == selects || text[pair.name.lowerBound..<pair.value.upperBound].contains(Self.semicolon)
  }

  private static let semicolon = UInt8(ascii: ";")
}

/// The parts of a `multipart` body that count.
struct PartSelection: Sendable {
  /// The names of fields, and of parts of any kind, that do not count or that alone count.
  private let fields: [String]
  private let parts: [String]
  private let selects: Bool
  /// Whether the names of files do not count.
  let dropsFileNames: Bool

  static let all = PartSelection(fields: [], parts: [], selects: false, dropsFileNames: false)

  init(fields: [String], parts: [String], selects: Bool, dropsFileNames: Bool) {
    self.fields = fields
    self.parts = parts
    self.selects = selects
    self.dropsFileNames = dropsFileNames
  }

  var isAll: Bool { fields.isEmpty && parts.isEmpty }

  /// Whether a part with this head counts. One whose head readers may take differently counts in any case, and one that
  /// some take for the wanted one as well.
  func counts(_ fields: UnsafeRawBufferPointer) -> Bool {
    guard !isAll, let head = PartHead(fields) else { return true }
    let matches = self.fields.map(head.match) + parts.map { head.match($0, takesFiles: true) }
    return selects ? matches.contains { $0 != .other } : !matches.contains(.field)
  }
}
