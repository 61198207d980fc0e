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
