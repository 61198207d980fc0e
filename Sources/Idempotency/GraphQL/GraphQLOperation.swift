import NIOCore
import Wire

/// The kind of GraphQL operation that a request runs, as far as the choice of its route depends on it.
public enum GraphQLOperation: Sendable {
  /// The body has not been read for it.
  case unread
  /// A mutation, or what may be one.
  case mutation
  /// Certainly no mutation: queries and subscriptions alone.
  case other
}

extension GraphQLOperation {
  /// Reads the operation that a body selects.
  ///
  /// The body must prove that it selects no mutation, because a mutation that is taken for a query would run
  /// unprotected. Therefore the operation counts as a mutation if the body is not plain JSON, names a stored document
  /// or has a member twice, if the document cannot be read, or if the URL may replace it. In a batch, every operation
  /// has to be proven.
  public init(of body: ByteBuffer, head: MessageHead, query: ByteBuffer?) {
    guard MediaType.unambiguous(head)?.kind == .json, !head.hasContentCoding else {
      self = .mutation
      return
    }
    let parameters = URLParameters(query)
    let isProven = body.withUnsafeReadableBytes { bytes in
      guard !parameters.replaceDocument, let document = try? JSONParser.parse(bytes), !document.hasDuplicates
      else { return false }
      return document.outermostObjects { members in
        let selection = Selection(members, in: document)
        return selection?.isProven(anyName: parameters.replaceName) ?? false
      }
    }
    self = isProven ? .other : .mutation
  }
}

/// The parameters of a URL that some servers prefer to members of the body. Some also ignore the letter case of names.
///
/// Too many of them, or a name that is too long, count as one that replaces the document.
private struct URLParameters {
  /// The maximum number of parameters that are read: a request with a body has hardly any.
  private static let maxParameters = 32
  /// The maximum length of a name that is read, in bytes: the longest that matters, with each byte encoded, spaces
  /// around it, and an index.
  private static let maxName = 128
  /// The parameters that replace the document, in lower case.
  private static let documents = ["query", "extensions", "id", "documentid", "doc_id", "queryid"]

  var replaceDocument = false
  var replaceName = false

  init(_ query: ByteBuffer?) {
    guard let query, query.readableBytes > 0 else { return }
    query.withUnsafeReadableBytes { text in
      var left = Self.maxParameters
      var start = 0
      while start < text.count, !replaceDocument {
        let end =
          text[start...].firstIndex { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: ";") } ?? text.count
        let pair = text[start..<end]
        start = end + 1
        if pair.isEmpty { continue }
        let name = UnsafeRawBufferPointer(rebasing: pair.prefix { $0 != UInt8(ascii: "=") })
        if left > 0 { read(name) } else { replaceDocument = true }
        left -= 1
      }
    }
  }

  private mutating func read(_ encoded: UnsafeRawBufferPointer) {
    guard encoded.count <= Self.maxName else { return replaceDocument = true }
    for name in Self.names(encoded) {
      if Self.documents.contains(name) { replaceDocument = true }
      if name == "operationname" { replaceName = true }
    }
  }

  /// The names by which the most lenient servers take a parameter, in lower case.
  ///
  /// Some strip control characters and spaces at both ends, as Java's `trim` does, and some end a name at NUL. PHP
  /// leaves out the index of a list, and takes a space, a dot or an open bracket within a name for an underscore.
  private static func names(_ encoded: UnsafeRawBufferPointer) -> [String] {
    let decoded = IteratorSequence(PercentText(encoded, as: .form)).map(ASCII.lowercased)
    let name = decoded.drop { $0 <= 0x20 }.prefix { $0 != 0 }
    let underscored = trimmed(name).map { " .[".utf8.contains($0) ? UInt8(ascii: "_") : $0 }
    return [trimmed(name.prefix { $0 != UInt8(ascii: "[") }), underscored[...]].map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  /// The bytes without control characters and spaces at their end.
  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    bytes[..<(bytes.lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? bytes.startIndex)]
  }
}

/// The members of one request that select its operation.
private struct Selection {
  /// The members that name a document which the server has stored, in lower case.
  private static let stored: [[UInt8]] = ["id", "documentid", "doc_id", "queryid"].map { Array($0.utf8) }
  private static let query = Array("query".utf8)
  private static let name = Array("operationName".utf8)
  private static let foldedName = name.map(ASCII.lowercased)

  private let document: JSONDocument
  private var text: UnsafeRawBufferPointer?
  private var wanted: [UInt8]?

  /// `nil` if a member may be read as another one: some servers ignore the letter case of names.
  init?(_ members: ArraySlice<JSONDocument.Member>, in document: JSONDocument) {
    self.document = document
    for member in members where !read(member) { return nil }
  }

  /// Reads a member that matters. False if it leaves the operation open.
  private mutating func read(_ member: JSONDocument.Member) -> Bool {
    // The limit is the longest name that matters, with each of its letters escaped.
    guard member.nameLength <= 6 * Self.name.count else { return true }
    let spelling = document.names[member]
    // The first letter rules most members out before memory is allocated for them.
    guard member.hasEscape || "qoid".utf8.contains(ASCII.lowercased(spelling.first ?? 0)) else { return true }
    let name = member.hasEscape ? Array(IteratorSequence(JSONText(spelling))) : Array(spelling)
    let folded = name.map(ASCII.lowercased)
    let isNull = document.text[Int(member.valueStart)] == UInt8(ascii: "n")
    if Self.stored.contains(folded) { return isNull }
    if folded == Self.query {
      guard name == Self.query, case .string(let text) = document.value(at: Int(member.valueStart)) else {
        return false
      }
      self.text = text
    } else if folded == Self.foldedName {
      guard name == Self.name else { return false }
      if isNull { return true }
      guard case .string(let text) = document.value(at: Int(member.valueStart)) else { return false }
      // Some servers treat an empty name as a missing one.
      if !text.isEmpty { wanted = Array(IteratorSequence(JSONText(text))) }
    }
    return true
  }

  /// Whether the document proves that no mutation runs.
  ///
  /// - Parameter anyName: Whether any of its operations may be the one that runs.
  func isProven(anyName: Bool) -> Bool {
    guard let text else { return false }
    let wanted = anyName ? nil : wanted
    return withUnsafeTemporaryAllocation(byteCount: max(1, text.count), alignment: 1) { memory in
      let count = JSONText.decode(text, to: memory)
      let decoded = UnsafeRawBufferPointer(rebasing: memory[..<count])
      guard let document = try? GraphQLDocument(decoded, wanted: wanted) else { return false }
      return !document.mayMutate
    }
  }
}
