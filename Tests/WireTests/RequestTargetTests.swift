import NIOCore
import Testing
import Wire

struct RequestTargetTests {
  private func target(_ text: String, method: String = "GET") throws -> RequestTarget {
    try RequestTarget(MessageHead(method: method, target: text))
  }

  @Test(arguments: [
    ("/", "/"), ("/a/b", "/a/b"), ("/.well-known/x", "/.well-known/x"), ("/a..b/.../..c", "/a..b/.../..c"),
    ("/a/./b", "/a/b"), ("/a/../b", "/b"), ("/a/b/..", "/a/"), ("/a/b/.", "/a/b/"), ("/..", "/"),
    ("/../..", "/"),
    ("/.", "/"), ("/a/b/../../c", "/c"), ("/a//../b", "/a/b"), ("//a", "//a"), ("/a/b/c/./../../g", "/a/g"),
    ("/%7Euser/%61", "/~user/a"), ("/%c3%a9%2c", "/%C3%A9%2C"), ("/a/%2e%2E/b", "/b"), ("/a/.%2e", "/"),
    ("/%25%32%66", "/%252f"), ("/a;x=1/...;/b;", "/a;x=1/...;/b;"), ("/a;./b", "/a;./b"),
    ("/;../a", "/;../a"), ("/mid/content=5/../6", "/mid/6"),
  ])
  func `a path has one form`(_ text: String, _ path: String) throws {
    #expect(String(buffer: try target(text).path) == path)
    #expect(String(buffer: try target("http://a\(text)?x=/../%2f").path) == path)
    #expect(String(buffer: try target(path).path) == path)
  }

  @Test(arguments: [
    ("/a/%62", "/a/%62"), ("/%c3%a9", "/%c3%a9"), ("/a/./%62", "/a/b"), ("/a/%2e%2e/%7e", "/~"), ("/a", "/a"),
    ("/%61?b=/../%2f", "/%61"),
  ])
  func `the backend gets the client's spelling, but for dot segments`(_ text: String, _ path: String) throws {
    #expect(String(buffer: try target(text).forwarded) == path)
  }

  @Test(arguments: [
    ("/a%2fb", "/a%2Fb"), ("/v1/a%2Fb%2fc/%62", "/v1/a%2Fb%2Fc/b"), ("/%2F", "/%2F"),
    ("/a%2F%2Fb/", "/a%2F%2Fb/"),
    ("/a/.x%2F...", "/a/.x%2F..."), ("/a%252Fb", "/a%252Fb"), ("/a/./b", "/a/b"), ("/a;x", "/a;x"),
  ])
  func `an encoded slash may be a character of its segment`(_ text: String, _ path: String) throws {
    let target = try RequestTarget(
      MessageHead(method: "GET", target: text + "?q=%2F"), reading: .keepingSlashes)
    #expect(String(buffer: target.path) == path)
    #expect(target.hasEncodedSlash == path.contains("%2F"))
    // The backend gets the client's spelling.
    #expect(String(buffer: target.forwarded) == (text == "/a/./b" ? path : text))
  }

  @Test(arguments: [
    "/a%2F..%2Fb", "/a%2F.", "/..%2Fa", "/a/%2e%2Fb", "/a%2F%2e%2e/b", "/a%2Fb/../c", "/./a%2Fb", "/a;x%2Fb",
    "/a%2Fb;x", "/a%2F%5Cb", "/a%2F%00", "/a%2F%zz", "/a%2Fb\\c", "/é%2F", "/a%2", "/a%2Fb/..",
  ])
  func `beside anything else that is open, an encoded slash is refused`(_ text: String) throws {
    let head = try MessageHead(method: "GET", target: text)
    #expect(throws: WireError.badPath) { try RequestTarget(head, reading: .keepingSlashes) }
  }

  @Test(arguments: ["/a%2fb", "/a\\b", "/%00", "/%zz", "/a/..;/b", "/é/%62"])
  func `a path without a normal form can be had as it was received`(_ text: String) throws {
    let head = try MessageHead(method: "GET", target: text + "?q=é")
    #expect(throws: WireError.badPath) { try RequestTarget(head) }
    let target = try RequestTarget(head, reading: .asReceived)
    #expect(String(buffer: target.path) == text && target.forwarded == target.path)
    #expect(target.query.map(String.init(buffer:)) == "q=é")
  }

  @Test(arguments: [
    "/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b", "/%00", "/%", "/%4", "/%4g", "/%zz", "/a/%2e%2e%2fb",
    "/a/..;/b", "/a/..;x=1", "/.;", "/a/%2e%2E;/b", "/a/.;x/b",
  ])
  func `a path that two readers would take differently is refused`(_ text: String) {
    #expect(throws: WireError.badPath) { try target(text) }
  }

  @Test(
    arguments: [
      ("/a", nil), ("/a?", ""), ("/a?b=c&d", "b=c&d"), ("/a?b?c", "b?c"), ("/?%2f\\..", "%2f\\.."),
      ("http://a?b", "b"),
    ] as [(String, String?)])
  func `a query is kept unchanged`(_ text: String, _ query: String?) throws {
    let target = try target(text)
    #expect(target.query.map(String.init(buffer:)) == query)
  }

  @Test
  func `a normal path is a slice of the head`() throws {
    var decoder = RequestDecoder()
    var input = ByteBuffer(string: "GET /v1/orders?a HTTP/1.1\r\nHost: a\r\n\r\n")
    guard case .head(let request)? = try decoder.next(&input) else {
      Issue.record("no head")
      return
    }
    let target = try RequestTarget(request.head)
    request.head.bytes.withUnsafeReadableBytes { head in
      target.path.withUnsafeReadableBytes { path in
        #expect(path.baseAddress == head.baseAddress.map { $0 + 4 })
        #expect(path.count == 10)
      }
    }
  }

  @Test
  func `each form of a target is recognised`() throws {
    let absolute = try target("HTTPS://A.example:8443")
    #expect(String(buffer: absolute.path) == "/")
    #expect(absolute.authority.map(String.init(buffer:)) == "A.example:8443")
    #expect(try target("*", method: "OPTIONS").form == .asterisk)
    #expect(String(buffer: try target("http://a", method: "OPTIONS").path) == "*")
    let tunnel = try target("a:443", method: "CONNECT")
    #expect(tunnel.form == .authority)
    #expect(tunnel.path.readableBytes == 0)
    #expect(tunnel.authority.map(String.init(buffer:)) == "a:443")
  }

  @Test(
    arguments: [
      ("a.Example", "/", "a.example", nil), ("a.example.:80", "/", "a.example", 80),
      ("b", "http://A:81/", "a", 81), ("127.0.0.1:80", "/", "127.0.0.1", 80),
      ("[2001:DB8::1]:443", "/", "[2001:db8::1]", 443), ("256.0.0.1", "/", "256.0.0.1", nil),
      ("1.2.3", "/", "1.2.3", nil), ("1.2.3.4.", "/", "1.2.3.4", nil),
      ("a:", "/", "a", nil), ("[0:0:0:0:0:0:0:1]", "/", "[::1]", nil), ("[0::1]:80", "/", "[::1]", 80),
      ("b", "http://[2001:DB8:0:0:1:00:0:0001]:81/", "[2001:db8::1:0:0:1]", 81), ("[0::]", "/", "[::]", nil),
      ("[::FFFF:102:304]", "/", "[::ffff:1.2.3.4]", nil), ("[::ffff:1.2.3.4]", "/", "[::ffff:1.2.3.4]", nil),
    ] as [(String, String, String, UInt16?)])
  func `the host is the target's, or else the Host field's`(
    _ field: String, _ text: String, _ name: String, _ port: UInt16?
  ) throws {
    var head = try MessageHead(method: "GET", target: text)
    head.append("Host", field, as: .host)
    let host = try #require(try RequestHost(of: head, target: RequestTarget(head)))
    #expect(String(buffer: host.name) == name)
    #expect(host.port == port)
  }

  @Test(arguments: ["[1:2:3]", "[:::]", "[1::2::3]", "[12345::]", "[::1.2.3]", "[1:2:3:4:5:6:7:8:]:80"])
  func `brackets around something else than an IPv6 address are refused`(text: String) {
    #expect(throws: WireError.badHost) { try RequestHost(ByteBuffer(string: text)) }
  }

  @Test(arguments: [
    ("127.0.0.1", true), ("10.1.2.3:80", true), ("256.0.0.1", true), ("1.2.3.4.", true), ("[::1]", true),
    ("[2001:db8::1]:443", true), ("1.2.3", false), ("1.2.3.4.5", false), ("1234.1.1.1", false),
    ("1.2..4", false), ("a.2.3.4", false), ("localhost", false),
  ])
  func `an address is told from a name`(text: String, isAddress: Bool) throws {
    #expect(try RequestHost(ByteBuffer(string: text))?.isAddress == isAddress)
  }

  @Test
  func `a request may have no host`() throws {
    var head = try MessageHead(method: "GET", target: "/")
    #expect(try RequestHost(of: head, target: RequestTarget(head)) == nil)
    head.append("Host", "", as: .host)
    #expect(try RequestHost(of: head, target: RequestTarget(head)) == nil)
  }
}
