import Idempotency
import NIOCore
import Wire

/// Prints the time that the costliest head of 64 KB takes, for each field and parameter that Semel reads. None may take
/// more than the ceiling.
///
///     HeadBenchmark [ROUNDS]
@main
enum HeadBenchmark {
  /// The maximum time on an event loop, in milliseconds a head of 64 KB.
  private static let ceiling = 0.1

  static func main() throws {
    let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 200
    print(
      "microseconds a head of 64 KB, the median of \(rounds) rounds; the ceiling is \(Int(ceiling * 1000))")
    for sample in try Sample.all() {
      let milliseconds = median(of: rounds, sample.read)
      let mark = milliseconds > ceiling ? "  ABOVE THE CEILING" : ""
      let name = sample.name + String(repeating: " ", count: max(1, 52 - sample.name.utf8.count))
      print(name + "\(Int((milliseconds * 1000).rounded()))" + mark)
    }
  }

  private static func median(of rounds: Int, _ body: () -> Void) -> Double {
    let spans = (0..<rounds).map { _ in ContinuousClock().measure(body) }.sorted()
    let median = spans[rounds / 2].components
    return Double(median.seconds) * 1e3 + Double(median.attoseconds) / 1e15
  }
}

/// A head, and its reader.
private struct Sample {
  let name: String
  let read: () -> Void

  /// The size of a line, which is the limit by default, with its name.
  private static let line = 16_000
  private static let lines = 4

  private static let route = {
    var route = RoutePolicy(
      name: "r", match: RouteMatch(methods: ["POST"]),
      upstream: UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1)))
    route.caller = CallerPolicy(parts: [.cookie("session"), .query("account"), .header("authorization")])
    route.key.from = [.query("key"), .header("idempotency-key"), .form("key")]
    return route
  }()
  private static let routes = RouteTable([route])

  private static func filled(_ piece: String) -> String {
    String(repeating: piece, count: line / piece.utf8.count)
  }

  private static func head(
    _ method: String, _ fields: [(String, String)], target: String = "/v1/orders"
  ) throws -> MessageHead {
    var head = try MessageHead(method: method, target: target)
    for (name, value) in fields { try head.append(name: name, value: value) }
    return head
  }

  /// A field that fills four lines with a piece.
  private static func field(
    _ name: String, _ piece: String, method: String = "POST", more: [(String, String)] = [],
    _ read: @escaping (MessageHead) -> Void
  ) throws -> Sample {
    let fields = Array(repeating: (name, filled(piece)), count: lines)
    let head = try head(method, fields + more)
    return Sample(name: "\(name): \(piece)…") { read(head) }
  }

  /// A query that fills a line with a piece.
  private static func query(
    _ reader: String, _ piece: String, _ read: @escaping (MessageHead, ByteBuffer) -> Void
  ) throws -> Sample {
    let head = try head("POST", [("Content-Type", "application/json")])
    let query = ByteBuffer(string: filled(piece))
    return Sample(name: "\(reader): ?\(piece)… (16 KB)") { read(head, query) }
  }

  private static func choose(_ head: MessageHead) {
    _ = try? routes.choice(for: head, host: ByteBuffer(), path: ByteBuffer(string: "/v1/orders"))
  }

  static func all() throws -> [Sample] {
    try decoded() + fields() + queries()
  }

  private static func decoded() throws -> [Sample] {
    let text = "POST /v1/orders HTTP/1.1\r\nHost: a\r\n"
    let long = (0..<lines).map { _ in "X-Long: \(filled("a"))\r\n" }.joined()
    let bytes = ByteBuffer(string: text + long + "\r\n")
    let pseudo = [(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "a")]
    func pairs(_ piece: String) -> [(name: String, value: String)] {
      (pseudo + Array(repeating: ("x-long", filled(piece)), count: 4)).map { (name: $0.0, value: $0.1) }
    }
    let (ascii, unicode) = (pairs("a"), pairs("\u{FEFF}"))
    return [
      Sample(name: "decoding HTTP/1.1") {
        var (decoder, input) = (RequestDecoder(), bytes)
        _ = try? decoder.next(&input)
      },
      Sample(name: "decoding HTTP/2, ASCII") { _ = try? RequestHead(http2: ascii, isEnd: true) },
      Sample(name: "decoding HTTP/2, U+FEFF") { _ = try? RequestHead(http2: unicode, isEnd: true) },
    ]
  }

  private static func fields() throws -> [Sample] {
    let peer = CallerPeer(address: nil)
    let document = PolicyDocument([route])
    let trusted = TrustedProxies(includesUnixSockets: true)
    let preflight = [("Origin", "https://a"), ("Access-Control-Request-Method", "POST")]
    let form = ByteBuffer(string: "key=k")
    return try [
      field("X-HTTP-Method-Override", "a,", choose), field("X-HTTP-Method-Override", "a b", choose),
      field("Access-Control-Request-Headers", "a,", method: "OPTIONS", more: preflight) {
        _ = routes.preflight($0)
      },
      field("Prefer", "a,") { _ = route.maxWait(for: $0) },
      field("Prefer", "wait=x,") { _ = route.maxWait(for: $0) },
      field("If-None-Match", "a,") { _ = document.response(to: $0, host: ByteBuffer()) },
      field("Authorization", "a,") { _ = $0.bindsConnection },
      field("Authorization", "token ,nonce") { try? readCaller($0, peer) },
      field("Cookie", "a;") { try? readCaller($0, peer) },
      field("Cookie", "session") { try? readCaller($0, peer) },
      field("X-Forwarded-For", "1.1.1.1,") { _ = trusted.client(in: $0) },
      field("Connection", ",") { head in
        var out = ByteBuffer()
        head.copyFields(into: &out)
      },
      field("TE", "a,") { _ = $0.list(.te, contains: "trailers") },
      field("Idempotency-Key", "k") { _ = try? route.key.keyBeforeBody(head: $0, query: nil) },
      single("Content-Type", "multipart/form-data;" + filled("a=b;")) { head in
        _ = try? route.key.key(head: head, query: nil, body: form) {
          Fingerprint.make(
            recipe: route.recipe, head: head, method: ByteBuffer(string: "POST"),
            path: ByteBuffer(string: "/"), query: nil, body: form)
        }
      },
    ]
  }

  private static func single(
    _ name: String, _ value: String, _ read: @escaping (MessageHead) -> Void
  ) throws -> Sample {
    let head = try head("POST", [(name, value)])
    return Sample(name: "\(name): \(value.prefix(24))… (16 KB)") { read(head) }
  }

  private static func readCaller(_ head: MessageHead, _ peer: CallerPeer) throws {
    _ = try route.caller?.caller(head: head, peer: peer)
  }

  private static func queries() throws -> [Sample] {
    let peer = CallerPeer(address: nil)
    let body = ByteBuffer(string: #"{"query":"{ a }"}"#)
    return try [
      query("key", "a&") { _ = try? route.key.keyBeforeBody(head: $0, query: $1) },
      query("key", "a;") { _ = try? route.key.keyBeforeBody(head: $0, query: $1) },
      query("key", "%6b%65%7") { _ = try? route.key.keyBeforeBody(head: $0, query: $1) },
      query("caller", "account&") { _ = try? route.caller?.caller(head: $0, peer: peer, query: $1) },
      query("GraphQL", "a&") { _ = GraphQLOperation(of: body, head: $0, query: $1) },
      query("GraphQL", "%20") { _ = GraphQLOperation(of: body, head: $0, query: $1) },
      query("inquiry", "a=b&") { head, query in
        _ = try? OutcomeInquiry(
          head: head, query: query, host: nil, peer: peer, routes: routes, under: nil)
      },
    ]
  }
}
