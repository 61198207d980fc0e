import TestSupport

/// Payloads of every media type, the same in every run: names that collide, share long beginnings and are spelt in
/// many ways.
struct RandomPayloads {
  private var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func next() -> Request {
    switch below(8) {
    case 0...2: form("application/x-www-form-urlencoded")
    case 3: multipart()
    case 4: form("text/plain")
    default: Request("application/json", json(depth: 0))
    }
  }

  /// Not `Int.random`, which another version of the standard library may make other numbers of.
  private mutating func below(_ bound: Int) -> Int { Int(generator.next() % UInt64(bound)) }

  private mutating func one(of pieces: [String]) -> String { pieces[below(pieces.count)] }

  /// Mostly a few, at times so many that they are sorted in another way.
  private mutating func count() -> Int { below(12) == 0 ? 40 + below(160) : below(7) }

  private mutating func text(_ pieces: [String]) -> String {
    let beginning = below(6) == 0 ? String(repeating: "prefix/", count: 1 + below(40)) : ""
    return (0..<below(4)).reduce(into: beginning) { text, _ in text += one(of: pieces) }
  }
}

extension RandomPayloads {
  private static let encoded = [
    "a", "b", "B", "name", "%61", "%62", "%4", "%", "%zz", "+", "%20", "%2B", "%2b", "%00", "%00a", "ä",
    "%C3%A4",
    "%c3%a4", "%7E", "~", "eightlong", "=", "%3D", "%26",
  ]

  private mutating func pairs() -> String {
    (0..<count()).map { _ in
      switch below(8) {
      case 0: ""
      case 1: text(Self.encoded)
      default: text(Self.encoded) + "=" + text(Self.encoded)
      }
    }.joined(separator: "&")
  }

  private mutating func form(_ type: String) -> Request {
    var request = Request(type, pairs())
    if below(2) == 0 { request.query = pairs() }
    return request
  }

  private mutating func multipart() -> Request {
    let parts = (0..<count()).map { _ in
      "--B\r\nContent-Disposition: form-data; name=\"\(text(Self.encoded))\"\r\n\r\n\(text(Self.encoded))\r\n"
    }
    return Request("multipart/form-data; boundary=B", parts.joined() + "--B--\r\n")
  }
}

extension RandomPayloads {
  private static let characters = [
    "a", "b", "B", "name", "\\u0061", "\\u0062", "\\n", "\\t", "\\/", "/", "\\\"", "\\\\", "\\u0000",
    "\\u0000a", "ä",
    "\\u00e4", "\\u00E4", "\\ud83d\\ude00", "😀", "\\ud800", "\\udc00a", "eightlong", "\\u006eame", "\u{7F}",
  ]

  private mutating func string() -> String { "\"" + text(Self.characters) + "\"" }

  private mutating func json(depth: Int) -> String {
    let space = one(of: ["", "", " ", "\n\t"])
    switch below(depth > 3 ? 3 : 7) {
    case 0: return string()
    case 1: return one(of: ["0", "-1", "1.0", "1e5", "1E+5", "12345678901234567890"])
    case 2: return one(of: ["true", "false", "null"])
    case 3:
      let elements = (0..<below(5)).map { _ in json(depth: depth + 1) }
      return "[" + space + elements.joined(separator: space + "," + space) + space + "]"
    default:
      // Many members of other names each, since one that is there twice would make the body count as bytes.
      let isNumbered = below(4) > 0
      let members = (0..<(depth == 0 ? count() : below(5))).map { index in
        let name = isNumbered ? "\"" + text(Self.characters) + "\(7 * index % 199)\"" : string()
        return name + space + ":" + space + json(depth: depth + 2)
      }
      return "{" + space + members.joined(separator: space + "," + space) + space + "}"
    }
  }
}
