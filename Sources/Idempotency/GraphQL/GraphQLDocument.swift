/// The operations of a GraphQL document, as far as it matters whether one of them is a mutation.
///
/// Every operation of a valid document is found. A server runs no operation of an invalid one. The time is linear, and
/// nothing is allocated, however many operations there are.
struct GraphQLDocument {
  /// The number of operations.
  private(set) var count = 0
  /// Whether any operation is a mutation.
  private(set) var hasMutation = false
  /// Whether an operation has the wanted name.
  private(set) var hasWanted = false
  /// Whether a mutation has the wanted name.
  private(set) var hasWantedMutation = false

  private let text: UnsafeRawBufferPointer
  private let wanted: [UInt8]?
  private var lexer: GraphQLLexer

  /// Reads a document of operations and fragments.
  ///
  /// - Parameter wanted: The name of the operation that is to run; `nil` if none is given.
  init(_ text: UnsafeRawBufferPointer, wanted: [UInt8]?) throws(GraphQLFault) {
    self.text = text
    self.wanted = wanted
    lexer = GraphQLLexer(text)
    while let token = try lexer.next() { try definition(token) }
  }

  /// Whether a server that is given the document may run a mutation. A document without an operation may stand for one
  /// that the server has stored.
  var mayMutate: Bool {
    guard count > 0 else { return true }
    return hasWanted ? hasWantedMutation : hasMutation
  }

  private mutating func definition(_ first: GraphQLLexer.Token) throws(GraphQLFault) {
    switch first {
    case .punctuator(UInt8(ascii: "{")):
      note(isMutation: false, name: nil)
      try skip(depth: 1)
    case .name(let word) where isWord("mutation", at: word):
      note(isMutation: true, name: try skipDefinition())
    case .name(let word) where isWord("query", at: word) || isWord("subscription", at: word):
      note(isMutation: false, name: try skipDefinition())
    case .name(let word) where isWord("fragment", at: word): _ = try skipDefinition()
    default: throw GraphQLFault()
    }
  }

  private mutating func note(isMutation: Bool, name: Range<Int>?) {
    count += 1
    if isMutation { hasMutation = true }
    guard let wanted, let name, text[name].elementsEqual(wanted) else { return }
    hasWanted = true
    if isMutation { hasWantedMutation = true }
  }

  private func isWord(_ word: StaticString, at range: Range<Int>) -> Bool {
    range.count == word.utf8CodeUnitCount
      && text[range].elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
  }

  /// Skips a definition behind its first word, its selection set included, and returns its name if it has one.
  private mutating func skipDefinition() throws(GraphQLFault) -> Range<Int>? {
    var name: Range<Int>?
    var isFirst = true
    var depth = 0
    while let token = try lexer.next() {
      switch token {
      case .name(let range):
        if isFirst { name = range }
      case .value:
        guard depth > 0 else { throw GraphQLFault() }
      case .punctuator(UInt8(ascii: "{")) where depth == 0:
        try skip(depth: 1)
        return name
      case .punctuator(let byte):
        depth += Self.step(byte)
        guard depth >= 0 else { throw GraphQLFault() }
      }
      isFirst = false
    }
    throw GraphQLFault()
  }

  /// Skips to the end of the brackets of which `depth` are open.
  private mutating func skip(depth: Int) throws(GraphQLFault) {
    var depth = depth
    while depth > 0 {
      guard let token = try lexer.next() else { throw GraphQLFault() }
      if case .punctuator(let byte) = token { depth += Self.step(byte) }
    }
  }

  /// The change in the depth of brackets. Their kinds are not compared, since a server runs nothing of a document that
  /// mixes them up.
  private static func step(_ byte: UInt8) -> Int {
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "("), UInt8(ascii: "["): 1
    case UInt8(ascii: "}"), UInt8(ascii: ")"), UInt8(ascii: "]"): -1
    default: 0
    }
  }
}
