import NIOCore
import Wire

/// The parameter `_method` of a query or a form, by which frameworks take a request for one of another method.
public enum MethodParameter {
  private static let name = "_method"
  /// The number of values after which no more are looked for: what stands twice is refused.
  private static let maxValues = 2
  /// The values of a parameter that cannot be taken for one method: as if it stood twice.
  private static let unclear = ["", ""]

  /// The methods that a form names, once a body has been read for them.
  public enum Form: Sendable, Equatable {
    case unread
    case read([String])

    var values: [String] {
      if case .read(let values) = self { values } else { [] }
    }
  }

  /// The values in a query, in capitals.
  static func values(inQuery query: ByteBuffer?) -> [String] {
    guard let query, query.readableBytes > name.utf8.count else { return [] }
    return query.withUnsafeReadableBytes { values(in: $0) }
  }

  /// The values in a form, in capitals; none in a body of another type, or one that cannot be read.
  public static func values(inBody body: ByteBuffer, _ head: MessageHead) -> [String] {
    guard head.declaresForm, !head.hasContentCoding, body.readableBytes > name.utf8.count,
      let type = MediaType.of(head)
    else { return [] }
    return body.withUnsafeReadableBytes { bytes in
      guard type.kind == .multipart else { return values(in: bytes) }
      guard let boundary = type.boundary(in: head),
        let (form, text) = Multipart.plain(bytes, boundary: boundary)
      else { return [] }
      switch form.field(named: name, in: text) {
      case .once(let content): return method(text[content])
      case .repeated: return unclear
      default: return []
      }
    }
  }

  private static func values(in text: UnsafeRawBufferPointer) -> [String] {
    var values: [String] = []
    var start = 0
    while start < text.count, values.count < maxValues {
      // Few names begin like this one, so that most pairs are passed over at their first byte.
      if mayBegin(text[start]) {
        var pairs = FormPairs(UnsafeRawBufferPointer(rebasing: text[start...]))
        if let pair = pairs.next(), pair.name.lowerBound == 0 {
          values += method(of: pair, UnsafeRawBufferPointer(rebasing: text[start...]))
        }
      }
      start = (ASCII.index(of: UInt8(ascii: "&"), in: text, start..<text.count) ?? text.count) + 1
    }
    return values
  }

  private static let (underscore, dot) = (UInt8(ascii: "_"), UInt8(ascii: "."))

  private static func mayBegin(_ byte: UInt8) -> Bool {
    byte == underscore || byte == UInt8(ascii: "%") || byte == dot || byte == UInt8(ascii: "+")
      || byte == ASCII.space
  }

  /// Whether a backend may read a name as `_method`: PHP drops spaces before names, ends them at a zero byte, and takes
  /// a dot or a space for an underscore.
  private static func isRead(_ text: UnsafeRawBufferPointer) -> Bool {
    var (text, rest) = (PercentText(text, as: .form), name.utf8[...])
    var isLeading = true
    while let byte = text.next(), byte != 0 {
      if isLeading, byte == ASCII.space { continue }
      isLeading = false
      guard rest.popFirst() == (byte == dot || byte == ASCII.space ? underscore : byte) else { return false }
    }
    return rest.isEmpty
  }

  private static func method(of pair: FormPairs.Pair, _ text: UnsafeRawBufferPointer) -> [String] {
    guard isRead(UnsafeRawBufferPointer(rebasing: text[pair.name])) else { return [] }
    let value = PercentText(UnsafeRawBufferPointer(rebasing: text[pair.value]), as: .form)
    let bytes = Array(IteratorSequence(value).prefix(HeadLimits.methodBytes + 1))
    return bytes.withUnsafeBytes { method($0[...]) }
  }

  /// The method that a value names, in capitals; none if it is empty.
  private static func method(_ bytes: Slice<UnsafeRawBufferPointer>) -> [String] {
    guard bytes.count <= HeadLimits.methodBytes else { return unclear }
    let word = bytes.filter { $0 > ASCII.space }
    return word.isEmpty ? [] : [String(decoding: word, as: UTF8.self).uppercased()]
  }
}

extension MessageHead {
  /// Whether a field or the query of the request names another method than its own.
  public func mayOverrideMethod(query: ByteBuffer?) -> Bool {
    !names.isDisjoint(with: .methodOverrides) || !MethodParameter.values(inQuery: query).isEmpty
  }
}

extension RouteTable {
  /// The enforced route because of which a form has to be read for the method that it may name; `nil` if none has other
  /// methods than the request's own.
  ///
  /// - Parameter own: The route of the written method.
  func routeOfForm(
    _ own: Route?, method: ByteBuffer, for head: MessageHead, host: ByteBuffer, path: ByteBuffer
  ) -> Route? {
    guard head.declaresForm, own?.policy.shadow != true else { return nil }
    let other = protectingRoute(head, host: host) { methods, pattern in
      methods.hasOthers(than: method)
        && pattern.map { pattern in path.withUnsafeReadableBytes(pattern.mayMean) } ?? true
    }
    return own?.isEnforced == true && other != nil ? own : other
  }
}

extension PathMatcher {
  /// Whether a normalised path matches, also without its format suffix.
  fileprivate func mayMean(_ path: UnsafeRawBufferPointer) -> Bool {
    matches(path) || spelling != .exact && FormatSuffix.removed(from: path).map(matches) ?? false
  }
}

/// The method by which a request asks a backend to run it instead of the written one: in fields, or in the parameter
/// `_method` of its query or its form.
enum MethodOverride: Equatable {
  /// The request names no method but the written one.
  case absent
  /// The request names this method, in capitals, once in each place.
  case one(String)
  /// The request names several methods, one of them twice, or what is too long for a method.
  case unclear

  /// Reads the fields up to the first value that decides, and two parameters at most.
  init(_ head: MessageHead, query: ByteBuffer?, form: MethodParameter.Form) {
    let fields = head.names.intersection(.methodOverrides).rawValue.nonzeroBitCount
    var found: String?
    var count = 0
    let isClear = head.readList(of: .methodOverrides) { value in
      count += 1
      guard count <= fields, value.count <= HeadLimits.methodBytes else { return false }
      let method = String(decoding: value, as: UTF8.self).uppercased()
      guard found == nil || found == method else { return false }
      found = method
      return true
    }
    let parameters = MethodParameter.values(inQuery: query) + form.values
    let method = found ?? parameters.first
    if !isClear || parameters.count > 1 || parameters.first ?? method != method {
      self = .unclear
    } else if let method, method != head.string(head.methodRange) {
      self = .one(method)
    } else {
      self = .absent
    }
  }
}

extension RouteTable {
  /// The protected route of the method that a request names instead of the written one, with that method; `nil` if the
  /// written one counts.
  ///
  /// A backend either honours such a field and runs the method that it names, or ignores it and runs the written one,
  /// and Semel cannot know which. On a protected path the request is therefore refused, unless each protected route of
  /// the two methods says that its backend honours the field. A request that would leave protection by it is refused,
  /// too. A shadowed route refuses nothing, and observes the written method.
  ///
  /// - Parameters:
  ///   - own: The route of the written method.
  ///   - host: The host without its port.
  ///   - path: The normalised path.
  func overriding(
    _ own: Route?, _ override: MethodOverride, for head: MessageHead, host: ByteBuffer, path: ByteBuffer,
    _ operation: GraphQLOperation
  ) throws(Problem) -> (route: Route, method: ByteBuffer)? {
    switch override {
    case .absent: return nil
    case .unclear:
      // Only the first values are read, and any may be the one that the backend takes.
      guard !isProtected(head, host, path) else { throw .badRequest(.methodOverride) }
      return nil
    case .one(let name):
      let method = ByteBuffer(string: name)
      let other = route(for: head, method: method, host: host, path: path, operation: operation)
      let protecting = [own, other].compactMap { $0 }.filter(\.isEnforced)
      guard !protecting.isEmpty else { return nil }
      guard let other, other.isEnforced, protecting.allSatisfy(\.policy.methodOverride) else {
        throw .badRequest(.methodOverride)
      }
      return (other, method)
    }
  }
}

/// The methods of a route's requests.
public struct MethodSet: Hashable, Sendable {
  /// One bit for each method known to `MessageHead`.
  private let known: UInt16
  /// The other methods in the set, by name.
  private let named: [[UInt8]]
  /// Whether the set contains all other methods, without naming them.
  private let holdsUnnamed: Bool

  /// Creates the set of the listed methods.
  public init(listed names: [String]) {
    var known: UInt16 = 0
    var named: [[UInt8]] = []
    for name in names.map({ Array($0.utf8) }) {
      let method = name.withUnsafeBytes { MessageHead.Method($0) }
      if method == .other { named.append(name) } else { known |= Self.bit(method) }
    }
    (self.known, self.named, holdsUnnamed) = (known, named, false)
  }

  private init(without excluded: UInt16) {
    (known, named, holdsUnnamed) = (~excluded, [], true)
  }

  /// Every method.
  public static let all = MethodSet(without: 0)

  /// All methods except the safe ones: GET, HEAD, OPTIONS and TRACE.
  public static let unsafe = MethodSet(without: bit(.get) | bit(.head) | bit(.options) | bit(.trace))

  /// Whether the set contains a method, in its spelling on the wire.
  public func contains(_ method: UnsafeRawBufferPointer) -> Bool {
    let value = MessageHead.Method(method)
    guard value == .other else { return known & Self.bit(value) != 0 }
    return holdsUnnamed || named.contains { $0.elementsEqual(method) }
  }

  /// Whether the set contains all methods of another set.
  public func isSuperset(of other: MethodSet) -> Bool {
    guard other.known & ~known == 0 else { return false }
    if holdsUnnamed { return true }
    return !other.holdsUnnamed && other.named.allSatisfy(named.contains)
  }

  /// Whether the set contains any method but this one.
  func hasOthers(than method: ByteBuffer) -> Bool {
    method.withUnsafeReadableBytes { method in
      let own = MessageHead.Method(method)
      let others = own == .other ? known : known & ~Self.bit(own)
      return others != 0 || holdsUnnamed || named.contains { !$0.elementsEqual(method) }
    }
  }

  private static func bit(_ method: MessageHead.Method) -> UInt16 { 1 << UInt16(method.rawValue) }
}
