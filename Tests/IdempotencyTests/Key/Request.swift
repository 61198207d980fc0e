import Idempotency
import NIOCore
import Wire

/// A request as a test writes it down.
struct Request {
  var method = "POST"
  var path = "/v1/orders"
  var query: String?
  var fields: [(String, String)] = []
  var body: [UInt8] = []

  /// A request with one field, or none.
  init(_ fields: (String, String)...) { self.fields = fields }

  /// A request with a body of this media type.
  init(_ type: String, body: some Sequence<UInt8>) {
    fields = [("Content-Type", type)]
    self.body = Array(body)
  }

  init(_ type: String, _ body: String) { self.init(type, body: body.utf8) }

  var head: MessageHead {
    var bytes = ByteBuffer(string: "\(method) \(path) HTTP/1.1\r\n")
    let methodLength = method.utf8.count
    let target = methodLength + 1..<methodLength + 1 + path.utf8.count
    var lines: [MessageHead.Field] = []
    for (name, value) in fields {
      let nameStart = bytes.writerIndex
      bytes.writeString(name + ": ")
      let valueStart = bytes.writerIndex
      bytes.writeString(value + "\r\n")
      var line = Self.anyLine
      line.nameStart = UInt32(nameStart)
      line.nameLength = UInt16(name.utf8.count)
      line.valueStart = UInt32(valueStart)
      line.valueLength = UInt32(value.utf8.count)
      line.name = Array(name.utf8).withUnsafeBytes { FieldName.recognise($0) }
      lines.append(line)
    }
    return MessageHead(
      bytes: bytes, start: .request(method: .other, methodRange: 0..<methodLength, target: target),
      minorVersion: 1, fields: lines)
  }

  /// A line to be filled in; what `append` makes holds no bytes that a head may not hold, and tests need
  /// some.
  private static let anyLine = {
    var head = MessageHead(start: .status(200, reason: 0..<0))
    head.append("a", "")
    return head.fields[0]
  }()

  var queryBuffer: ByteBuffer? { query.map { ByteBuffer(string: $0) } }

  func key(_ policy: KeyPolicy) throws(Problem) -> String? {
    try wholeKey(policy).map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  func wholeKey(_ policy: KeyPolicy) throws(Problem) -> IdempotencyKey? {
    try policy.key(head: head, query: queryBuffer, body: ByteBuffer(bytes: body)) { fingerprint(.one) }
  }

  func fingerprint(_ recipe: Recipe = Recipe()) -> Fingerprint {
    Fingerprint.make(
      recipe: recipe, head: head, method: ByteBuffer(string: method), path: ByteBuffer(string: path),
      query: queryBuffer, body: ByteBuffer(bytes: body))
  }

  /// Whether the body entered the fingerprint as bytes, for whatever reason.
  var isFingerprintedRaw: Bool { isFingerprintedRaw(Recipe()) }

  func isFingerprintedRaw(_ recipe: Recipe) -> Bool {
    fingerprint(recipe).digest == fingerprint(Recipe(version: recipe.version, body: .raw)).digest
  }
}

extension Recipe {
  /// The first version's, which older records name.
  static let one = Recipe(version: .one)
}

extension KeyPolicy {
  init(from: KeySource...) {
    self.init()
    self.from = from
  }
}
