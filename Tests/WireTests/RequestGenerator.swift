import TestSupport

/// Makes streams of requests, plain and damaged, the same ones for the same seed.
struct RequestGenerator {
  private var random: SeededGenerator

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
  }

  /// One to three requests, in most cases with a few damages.
  mutating func next() -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0..<pick([1, 1, 2, 3]) { bytes += request() }
    for _ in 0..<pick([0, 1, 1, 2, 3, 5]) { damage(&bytes) }
    return bytes
  }

  private mutating func pick<T>(_ options: [T]) -> T {
    options[Int(random.next() % UInt64(options.count))]
  }

  private mutating func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }

  private mutating func request() -> [UInt8] {
    let method = pick(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
    var text =
      "\(method) \(pick(chance(90) ? Self.targets : Self.oddTargets)) HTTP/1.\(chance(90) ? 1 : 0)\r\n"
    text += chance(95) ? "Host: \(pick(chance(95) ? Self.hosts : Self.oddHosts))\r\n" : ""
    for _ in 0..<pick([0, 1, 2, 3, 6]) { text += pick(chance(95) ? Self.lines : Self.oddLines) + "\r\n" }
    let body = String(repeating: "x", count: pick([0, 1, 5, 17, 300]))
    switch pick([0, 0, 1, 1, 2, 2]) {
    case 1: text += "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    case 2: text += "Transfer-Encoding: chunked\r\n\r\n\(chunked(body))"
    default: text += "\r\n"
    }
    return text.bytes
  }

  private mutating func chunked(_ body: String) -> String {
    var text = ""
    var rest = Substring(body)
    while !rest.isEmpty {
      let chunk = rest.prefix(pick([1, 3, 16, 200]))
      rest = rest.dropFirst(chunk.count)
      text +=
        "\(chance(20) ? "0" : "")\(String(chunk.count, radix: 16))\(pick(chance(95) ? Self.extensions : Self.oddExtensions))\r\n\(chunk)\r\n"
    }
    return text + "0\r\n\(pick(chance(90) ? Self.trailers : Self.oddTrailers))\r\n"
  }

  private mutating func damage(_ bytes: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    let at = Int(random.next() % UInt64(bytes.count))
    let end = min(bytes.count, at + Int(random.next() % 12))
    switch pick([0, 1, 2, 3, 4, 5, 5, 5]) {
    case 0: bytes[at] = UInt8(truncatingIfNeeded: random.next())
    case 1: bytes[at] ^= 1 << UInt8(random.next() % 8)
    case 2: bytes.removeSubrange(at..<end)
    case 3: bytes.insert(contentsOf: bytes[at..<end], at: at)
    case 4: bytes.removeSubrange(at...)
    default: bytes.insert(contentsOf: pick(Self.pieces).bytes, at: at)
    }
  }

  private static let targets = [
    "/", "/v1/orders?a=b&c=%20", "/a/./b/../c", "/%7euser/%2e%2E/x%3f", "http://a.example/x",
    "HTTP://[::1]:8080",
    "//a//b", "/.well-known/x", "/{}|^`\"<>?'",
  ]
  private static let oddTargets = [
    "*", "/a b", "/\u{e9}", "/x#y", "/a%2fb", "/a\\b", "ftp://a/", "http://a@b/", "a",
  ]
  private static let hosts = ["a.example", "a.example:80", "A.B", "[::1]:443", "127.0.0.1", "", "a_b"]
  private static let oddHosts = ["a,b", "a@b", "a b", "[::1", "a:b"]
  private static let lines = [
    "Accept: */*", "X-Empty:", "X-Empty: ", "x-tabs:\t a\tb\t", "Connection: keep-alive",
    "Connection: x-named, keep-alive", "X-Named: 1", "Cookie: a=b; c=d", "X-Obs: \u{e9}\u{ff}",
    "Expect: 100-continue", "Idempotency-Key: \"abc\"", "Idempotency_Attempt: 3", "TE: trailers",
    "X-Long: \(String(repeating: "y", count: 90))", "Keep-Alive: timeout=5",
  ]
  private static let oddLines = [
    "Transfer-Encoding: chunked", "Content-Length: 5", "Transfer-Encoding: gzip, chunked",
    "Connection: close",
    "X : y", " folded", "Content-Length: 0\t", "Host: b",
  ]
  private static let extensions = ["", "", "", ";a", ";a=b", ";a=\"b c\"", ";a;b=\"\";c"]
  private static let oddExtensions = [" ;a", "; a", ";", ";a=", ";a=\"\u{e9}\"", ";a=\"\\\"\"", ";a=\"b"]
  private static let trailers = ["", "", "X-Sum: 1\r\n", "X-Sum:1\r\nX-More: \u{e9}\r\n"]
  private static let oddTrailers = [
    "Content-Length: 3\r\n", "Host: b\r\n", "Connection: close\r\n", "X-Fold: a\r\n b\r\n", "X: a\n",
  ]
  private static let pieces = [
    "\r\n", "\n", "\r", "\r\n\r\n", "\n\n", " ", "\t", ":", " :", "\0", "\u{7f}", "\u{80}", "0", "f", "-1",
    "+1", ",", "%",
    ";", "\"", "\\", "#", "Content-Length: 3\r\n", "Content-Length: 3, 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "transfer-encoding:\tchunked\r\n", "Transfer-Encoding: identity\r\n", "Host: b\r\n", "\r\n ", "0\r\n\r\n",
    "ffffffffffffffff", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1", " HTTP/1.0", "chunked",
    "Connection: close\r\n",
  ]
}
