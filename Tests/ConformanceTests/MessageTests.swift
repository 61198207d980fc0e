import Testing

@testable import Conformance

/// URLs, JSON and requests as bytes.
struct MessageTests {
  @Test func `a URL is taken apart`() throws {
    let endpoint = try #require(Endpoint("https://api.example.com/v1/orders?a=1#top"))
    #expect(endpoint.isSecure && endpoint.host == "api.example.com" && endpoint.port == 443)
    #expect(endpoint.target == "/v1/orders?a=1" && endpoint.path == "/v1/orders")
    #expect(endpoint.authority == "api.example.com")
    let other = try #require(Endpoint("http://[::1]:8080"))
    #expect(
      other.host == "::1" && other.port == 8080 && other.target == "/" && other.authority == "[::1]:8080")
  }

  @Test(arguments: [
    "api.example.com", "ftp://a/", "http://", "http://a:0/", "http://a:x/", "http://u:p@a/", "http://a/ b",
    "http://[::1", "http://a/\r\n",
  ])
  func `what is no URL of HTTP is refused`(text: String) {
    #expect(Endpoint(text) == nil)
  }

  @Test(arguments: [
    ("http://localhost/", true), ("http://127.0.0.1:1/", true), ("http://127.9.9.9/", true),
    ("https://[::1]/", true), ("http://a.localhost/", true), ("http://127.0.0.1.example.com/", false),
    ("http://localhost.example.com/", false), ("http://10.0.0.1/", false), ("http://[::2]/", false),
  ])
  func `this machine is told from others`(url: String, isLoopback: Bool) throws {
    #expect(try #require(Endpoint(url)).isLoopback == isLoopback)
  }

  @Test func `JSON keeps order, digits and escapes`() throws {
    let text = #"{"b":[1.0,1e3,true,null],"a":"x\"\\\u00e9"}"#
    let json = try #require(JSONValue(text.utf8))
    #expect(json.text() == #"{"b":[1.0,1e3,true,null],"a":"x\"\\é"}"#)
    #expect(json.text(.reversed) == #"{"a":"x\"\\é","b":[1.0,1e3,true,null]}"#)
    #expect(json.value(at: "/b/1") == .number("1e3"))
    #expect(json.value(at: "/c") == nil)
    #expect(JSONValue(json.text(space: " ").utf8) == json)
  }

  @Test(arguments: ["", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"\u{1}\"", "{\"a\":}", "\"\\x\"", "--1"])
  func `what is no JSON is refused`(text: String) {
    #expect(JSONValue(text.utf8) == nil)
  }

  @Test func `JSON that is nested too deep is refused`() {
    #expect(JSONValue(String(repeating: "[", count: 100_000).utf8) == nil)
  }

  @Test(arguments: [
    (#"{"a":"book"}"#, #"{"a":"bool"}"#), (#"{"a":9}"#, #"{"a":10}"#),
    (#"{"a":[],"b":true}"#, #"{"a":[],"b":false}"#),
    (#"{"a":"2026-11-29"}"#, #"{"a":"2026-11-28"}"#), (#"{"a":""}"#, #"{"a":"x"}"#), ("text", "text2"),
  ])
  func `another payload is made of the first`(first: String, other: String) {
    #expect(Payloads(Array(first.utf8)).other.map { String(decoding: $0, as: UTF8.self) } == other)
  }

  @Test func `a pointer names the member that makes another payload`() {
    let payload = Array(#"{"a":"book","b":{"c":1}}"#.utf8)
    #expect(
      Payloads(payload, vary: "/b/c").other.map { String(decoding: $0, as: UTF8.self) }
        == #"{"a":"book","b":{"c":2}}"#)
    #expect(Payloads(payload, vary: "/b").other == nil)
    #expect(Payloads(payload, vary: "/x").other == nil)
  }

  @Test func `a refusal leads to its documentation`() {
    func response(_ fields: [HeaderLine], _ body: String = "") -> RawResponse {
      RawResponse(status: 422, fields: fields, body: Array(body.utf8))
    }
    let link = HeaderLine(
      name: "Link", value: #"<https://a.example/x>; rel="next", <https://a.example/docs>; rel="describedby""#)
    #expect(response([link]).documentation == "https://a.example/docs")
    #expect(response([], #"{"type":"https://a.example/p"}"#).documentation == "https://a.example/p")
    #expect(response([], #"{"type":"about:blank"}"#).documentation == nil)
    #expect(response([], "see https://a.example/d.").documentation == "https://a.example/d.")
    #expect(response([], "no").documentation == nil && !response([], "no").isDescribed)
  }
}
