import Idempotency
import NIOCore
import Wire

/// A request to be fingerprinted.
struct Sample {
  let name: String
  private let head: MessageHead
  private let query: ByteBuffer?
  private let body: ByteBuffer

  init(_ name: String, _ type: String, query: String? = nil, _ body: String) {
    self.name = name
    var head = MessageHead(start: .request(method: .post, methodRange: 0..<0, target: 0..<0))
    head.append("Content-Type", type, as: .contentType)
    self.head = head
    self.query = query.map { ByteBuffer(string: $0) }
    self.body = ByteBuffer(string: body)
  }

  /// In bytes.
  var size: Int { body.readableBytes }

  func fingerprint(_ recipe: Recipe) -> Fingerprint {
    .make(
      recipe: recipe, head: head, method: ByteBuffer(string: "POST"),
      path: ByteBuffer(string: "/v1/orders"),
      query: query, body: body)
  }
}

extension Sample {
  /// Pieces until a mebibyte is full.
  private static func filled(_ piece: (Int) -> String) -> String {
    var text = ""
    text.reserveCapacity(1 << 20)
    var index = 0
    while text.utf8.count < 1 << 20 {
      text += piece(index)
      index += 1
    }
    return text
  }

  /// The same numbers in every run, without order (SplitMix64).
  private static func mixed(_ index: Int, below bound: UInt64) -> UInt64 {
    var mixed = UInt64(truncatingIfNeeded: index) &* 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return (mixed ^ (mixed >> 31)) % bound
  }

  private static func letter(_ index: Int) -> String {
    String(Unicode.Scalar(UInt8(0x61 + mixed(index, below: 26))))
  }

  /// A byte that is not encoded and separates nothing, other than a digit.
  private static func byte(_ index: Int) -> String {
    String(Unicode.Scalar(UInt8(0x3E + mixed(index, below: 65))))
  }

  private static func encodedLetter(_ index: Int) -> String {
    "%" + String(0x61 + mixed(index, below: 26), radix: 16)
  }

  private static func form(_ name: String, _ piece: (Int) -> String) -> Sample {
    Sample("urlencoded, " + name, "application/x-www-form-urlencoded", filled(piece))
  }

  private static func object(_ name: String, _ member: (Int) -> String) -> Sample {
    Sample("json, " + name, "application/json", "{" + filled { "\"\(member($0))\":1," } + "\"\":1}")
  }

  private static let beginning = String(repeating: "p", count: 200)

  static let all = [
    Sample("raw", "application/octet-stream", filled { "\($0)" }),
    form("usual") { "field\(mixed($0, below: 100_000))=some+value%20here&" },
    form("names of a byte") { letter($0) + "&" },
    form("names of any byte") { byte($0) + "&" },
    form("encoded names") { encodedLetter($0) + encodedLetter(~$0) + "=&" },
    form("long beginnings") { beginning + "\(mixed($0, below: 10_000))=1&" },
    object("members in order") { "m\(1_000_000 + $0)" },
    object("shuffled members") { "m\(mixed($0, below: 1_000_000))x\($0)" },
    object("escaped names") { "\\u0061\(mixed($0, below: 1_000_000))x\($0)" },
    object("long beginnings") { beginning + "\(mixed($0, below: 10_000))x\($0)" },
    Sample("json, small objects", "application/json", "[" + filled { _ in #"{"b":1,"a":2,"c":3},"# } + "0]"),
    Sample("json, objects of one member", "application/json", "[" + filled { _ in #"{"":0},"# } + "0]"),
    Sample("json, digits", "application/json", "[" + filled { _ in "0," } + "0]"),
    Sample("json, numbers with zeros", "application/json", "[" + filled { _ in "-1.0,0.10e1," } + "0]"),
    form("names in lists") { "items[][field\(mixed($0, below: 100_000))]=some+value%20here&" },
    Sample("json, text", "application/json", "[" + filled { _ in "\"\(beginning)\"," } + "0]"),
    Sample(
      "multipart, files", "multipart/form-data; boundary=B",
      filled { "--B\r\nContent-Disposition: form-data; name=\"f\($0)\"\r\n\r\n\(beginning)\(beginning)\r\n" }
        + "--B--"),
    Sample(
      "multipart, empty parts", "multipart/form-data; boundary=B", filled { _ in "--B\r\n\r\n\r\n" } + "--B--"
    ),
  ]

  static func encodedQuery(_ size: Int) -> Sample {
    Sample("query", "text/plain", query: (0..<size / 4).map { encodedLetter($0) + "&" }.joined(), "")
  }

  static let small = Sample(
    "small", "application/json", query: "page=1&limit=10",
    #"{"item":"book","amount":1999,"currency":"EUR","note":"x"}"#)
}
