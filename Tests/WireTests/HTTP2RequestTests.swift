import NIOCore
import Testing
import Wire

private typealias Fields = [(name: String, value: String)]

struct HTTP2RequestTests {
  private static let defaultFields: Fields = [
    (":method", "POST"), (":scheme", "https"), (":path", "/v1/orders?a=b"), (":authority", "api.example"),
  ]

  private func request(_ more: Fields = [], _ pseudo: Fields = defaultFields, isEnd: Bool = false) throws
    -> RequestHead
  {
    try RequestHead(http2: pseudo + more, isEnd: isEnd)
  }

  private func error(_ more: Fields, _ pseudo: Fields = defaultFields, isEnd: Bool = false) -> WireError? {
    do {
      _ = try RequestHead(http2: pseudo + more, isEnd: isEnd)
      return nil
    } catch {
      return error
    }
  }

  @Test func `a request reads as one of HTTP 1 1 would`() throws {
    let head = try request([("idempotency-key", "k"), ("x-other", "ä")]).head
    #expect(
      String(buffer: head.bytes) == """
        POST /v1/orders?a=b HTTP/1.1\r
        Host: api.example\r
        idempotency-key: k\r
        x-other: ä\r

        """)
    #expect(head.method == .post)
    #expect(head.string(.idempotencyKey) == "k")
    #expect(head.minorVersion == 1)
  }

  @Test func `split cookies become one field`() throws {
    let head = try request([("cookie", "a=1"), ("x", "y"), ("cookie", "b=2; c=3")]).head
    #expect(head.count(.cookie) == 1)
    #expect(head.string(.cookie) == "a=1; b=2; c=3")
    let many = try request((0..<200).map { ("cookie", "c\($0)=1") }).head
    #expect(many.string(.cookie)?.hasSuffix("; c199=1") == true)
  }

  @Test(arguments: [
    (["a=1", ""], "a=1"), (["", "a=1", "", "b"], "a=1; b"), ([""], ""), (["", ""], ""),
  ]) func `empty cookies are dropped`(crumbs: [String], cookie: String) throws {
    let head = try request(crumbs.map { ("cookie", $0) }).head
    #expect(head.count(.cookie) == 1)
    #expect(head.string(.cookie) == cookie)
  }

  @Test func `the authority may be in Host alone, or in both alike`() throws {
    let pseudo: Fields = [(":method", "GET"), (":scheme", "http"), (":path", "/")]
    #expect(try request([("host", "h:1")], pseudo).head.string(.host) == "h:1")
    #expect(try request([("host", "H:1")], pseudo + [(":authority", "h:1")]).head.string(.host) == "h:1")
    #expect(error([], pseudo) == .missingHost)
    #expect(error([("host", "b")], pseudo + [(":authority", "a")]) == .badHost)
    #expect(error([("host", "a"), ("host", "a")], pseudo) == .repeatedHost)
    #expect(error([], pseudo + [(":authority", "user@a")]) == .badHost)
  }

  @Test func `the body has its length, or its end`() throws {
    #expect(try request([("content-length", "7")]).framing == .length(7))
    #expect(try request([("content-length", "0")], isEnd: true).framing == .length(0))
    #expect(try request().framing == .chunked)
    #expect(try request(isEnd: true).framing == .none)
    #expect(error([("content-length", "7")], isEnd: true) == .badContentLength)
    #expect(error([("content-length", "7"), ("content-length", "7")]) == .repeatedContentLength)
    #expect(error([("content-length", "+7")]) == .badContentLength)
  }

  @Test func `CONNECT has only an authority`() throws {
    let head = try request([], [(":method", "CONNECT"), (":authority", "h:443")]).head
    #expect(head.string(head.target) == "h:443")
    #expect(error([], [(":method", "CONNECT"), (":path", "/"), (":authority", "h:443")]) == .badPseudoField)
  }

  @Test(arguments: [
    [(":method", "GET"), (":scheme", "https"), (":authority", "a")],
    [(":scheme", "https"), (":path", "/"), (":authority", "a")],
    [(":method", "GET"), (":path", "/"), (":authority", "a")],
    [(":method", "GET"), (":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a")],
    [(":method", "GET"), (":scheme", "ftp"), (":path", "/"), (":authority", "a")],
    [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a"), (":status", "200")],
    [(":method", "GET"), (":scheme", "https"), (":path", "/"), ("x", "y"), (":authority", "a")],
  ]) func `the pseudo fields are those of a request, each once and before the others`(
    fields: [(String, String)]
  ) {
    #expect(throws: WireError.self) { try RequestHead(http2: fields.map { ($0.0, $0.1) }, isEnd: true) }
  }

  @Test(arguments: ["", "orders", "http://a/", "/a b", "/a#b", "/\u{7F}"])
  func `an invalid path is refused`(path: String) {
    #expect(
      error([], [(":method", "GET"), (":scheme", "https"), (":path", path), (":authority", "a")]) != nil)
  }

  @Test(arguments: [
    ("Upper", "x", WireError.badFieldName), ("with space", "x", .badFieldName), ("", "x", .badFieldName),
    ("colon:", "x", .badFieldName), ("x", "a\r\nb: c", .badFieldValue), ("x", "a\0", .badFieldValue),
    ("x", " a", .badFieldValue), ("x", "a\t", .badFieldValue), ("x", "\u{FFFD}", .badFieldValue),
    ("connection", "close", .badConnection), ("keep-alive", "1", .badConnection),
    ("proxy-connection", "x", .badConnection), ("transfer-encoding", "chunked", .badConnection),
    ("upgrade", "h2c", .badConnection), ("te", "gzip", .badConnection),
  ]) func `a field that HTTP 2 forbids is refused`(name: String, value: String, expected: WireError) {
    #expect(error([(name, value)]) == expected)
  }

  @Test func `te may be trailers`() throws {
    #expect(try request([("te", "trailers")]).head.string(.te) == "trailers")
  }

  @Test func `a head is limited`() {
    let large: Fields = [("x", String(repeating: "a", count: 64 << 10))]
    #expect(error(large) == .headTooLarge)
    #expect(error(Array(repeating: ("x", "y"), count: 100)) == .tooManyFields)
  }

  @Test func `a line is limited as in HTTP 1 1`() throws {
    let limits = HeadLimits(headBytes: 1000, lineBytes: 100)
    func filler(_ count: Int) -> String { String(repeating: "a", count: count) }
    func error(_ more: Fields = [], path: String = "/", host: String = "a") -> WireError? {
      let pseudo: Fields = [
        (":method", "POST"), (":scheme", "https"), (":path", path), (":authority", host),
      ]
      do {
        _ = try RequestHead(http2: pseudo + more, isEnd: true, limits: limits)
        return nil
      } catch {
        return error
      }
    }
    // The name, a colon, a space, the value, and the line's end.
    #expect(error([("x", filler(95))]) == nil)
    #expect(error([("x", filler(96))]) == .headTooLarge)
    #expect(error(host: filler(92)) == nil)
    #expect(error(host: filler(93)) == .headTooLarge)
    #expect(error(path: "/" + filler(83)) == nil)
    #expect(error(path: "/" + filler(84)) == .targetTooLong)
    // The pieces of a cookie become one line.
    #expect(error([("cookie", filler(44)), ("cookie", filler(44))]) == nil)
    #expect(error([("cookie", filler(44)), ("cookie", filler(45))]) == .headTooLarge)
    #expect(throws: WireError.headTooLarge) {
      try HTTP2Trailers.lines([("x", filler(96))], limits: limits)
    }
  }

  @Test func `trailers follow the rules of chunked bodies`() throws {
    let lines = try HTTP2Trailers.lines([("grpc-status", "0"), ("authorization", "x")])
    #expect(String(buffer: lines) == "grpc-status: 0\r\n")
    #expect(throws: WireError.forbiddenTrailer) { try HTTP2Trailers.lines([("content-length", "1")]) }
    #expect(throws: WireError.badPseudoField) { try HTTP2Trailers.lines([(":path", "/")]) }
  }

  @Test func `a body has exactly its declared length`() throws {
    var length = BodyLength(.length(5))
    try length.add(3)
    #expect(throws: WireError.badContentLength) { try length.end() }
    try length.add(2)
    try length.end()
    #expect(throws: WireError.badContentLength) { try length.add(1) }
    var unknown = BodyLength(.chunked)
    try unknown.add(1_000_000)
    try unknown.end()
  }
}
