import Idempotency
import Testing

/// Keys in the query and in the body.
struct KeySourceTests {
  enum Expected: Sendable { case key(String), none, refused }

  private func check(_ request: Request, _ source: KeySource, _ expected: Expected) {
    switch (expected, Result { () throws(Problem) in try request.key(KeyPolicy(from: source)) }) {
    case (.key(let wanted), .success(let key)): #expect(key == wanted)
    case (.none, .success(let key)): #expect(key == nil)
    case (.refused, .failure(let problem)): #expect(problem.code == .keyInvalid)
    case (_, let other): Issue.record("expected \(expected), not \(other)")
    }
  }

  @Test(
    arguments: [
      ("key=abc", .key("abc")),
      ("a=1&key=abc&b=2", .key("abc")),
      ("key=a%41%2D", .key("aA-")),
      ("k%65y=abc", .key("abc")),
      ("key=a+b", .key("a+b")),
      ("key=a%2Bb", .key("a+b")),
      ("key=a=b==", .key("a=b==")),
      ("", .none),
      ("key", .none),
      ("key=", .none),
      ("Key=abc", .none),
      ("keys=abc", .none),
      ("a=key", .none),
      ("key=a&key=a", .refused),
      ("key=a&k%65y=b", .refused),
      ("key=a&key", .refused),
      ("key=a%20b", .refused),
      ("key=a%", .refused),
      ("key=a%4", .refused),
      ("key=a%4g", .refused),
      ("key=%C3%A4", .refused),
      ("key=%00", .refused),
    ] as [(String, Expected)])
  func `a query's parameter is a key`(query: String, expected: Expected) {
    var request = Request()
    request.query = query
    check(request, .query("key"), expected)
  }

  @Test(
    arguments: [
      (#"{"id":"abc"}"#, "/id", .key("abc")),
      (#" { "a" : [ {} , [1,{"id":2}] ] , "id" : "abc" } "#, "/id", .key("abc")),
      (#"{"\u0069d":"\u0061bc"}"#, "/id", .key("abc")),
      (#"{"id":"a\"b\\c\/"}"#, "/id", .key(#"a"b\c/"#)),
      (#"{"a":{"b":{"c":"x"}}}"#, "/a/b/c", .key("x")),
      (#"{"a/b":{"~":"x"}}"#, "/a~1b/~0", .key("x")),
      (#"{"a":[1,[2,{"z":[]}],{"b":"x"},3]}"#, "/a/2/b", .key("x")),
      (#"{"a":["]","\"]",{"b":"]"},"x"]}"#, "/a/3", .key("x")),
      (#"[{"a":{}},{"a":{}},{"a":"x"}]"#, "/2/a", .key("x")),
      (#"{"0":"x"}"#, "/0", .key("x")),
      (#"{"":"x"}"#, "/", .key("x")),
      (#"{"id":12}"#, "/id", .key("12")),
      (#"{"id":-12}"#, "/id", .key("-12")),
      (#"{"id":123456789012345678901234567890}"#, "/id", .key("123456789012345678901234567890")),
      (#"{"x":1,"x":2,"id":"abc"}"#, "/id", .key("abc")),
      (#"{"id":""}"#, "/id", .none),
      (#"{"ID":"abc"}"#, "/id", .none),
      (#"{"a":{"id":"abc"}}"#, "/id", .none),
      (#"{"id":"abc"}"#, "/id/x", .none),
      (#"{"id":["x"]}"#, "/id/1", .none),
      (#"{"id":["x"]}"#, "/id/00", .none),
      (#"{"id":["x"]}"#, "/id/-", .none),
      (#"["x"]"#, "/id", .none),
      (#""x""#, "/id", .none),
      ("", "/id", .none),
      (#"{"id":"abc"} x"#, "/id", .none),
      (#"{"id":"abc""#, "/id", .none),
      (#"{"id":"abc","id":"abc"}"#, "/id", .refused),
      (#"{"id":"abc","i\u0064":"def"}"#, "/id", .refused),
      (#"{"id":1.0}"#, "/id", .refused),
      (#"{"id":1e3}"#, "/id", .refused),
      (#"{"id":true}"#, "/id", .refused),
      (#"{"id":null}"#, "/id", .refused),
      (#"{"id":[]}"#, "/id", .refused),
      (#"{"id":{}}"#, "/id", .refused),
      (#"{"id":"a b"}"#, "/id", .refused),
      (#"{"id":"\ud800"}"#, "/id", .refused),
      (#"{"id":"\u0000"}"#, "/id", .refused),
    ] as [(String, String, Expected)])
  func `a JSON member is a key`(body: String, pointer: String, expected: Expected) {
    check(Request("application/json", body), .json(pointer), expected)
  }

  @Test func `a coded body yields no key`() {
    var request = Request("application/json", #"{"id":"abc"}"#)
    request.fields.append(("Content-Encoding", "gzip"))
    check(request, .json("/id"), .none)
    request.fields[1].1 = "identity"
    check(request, .json("/id"), .key("abc"))
  }

  @Test(
    arguments: [
      ("key=abc", .key("abc")),
      ("a=b&k%65y=%61bc", .key("abc")),
      ("key=a%2Bb", .key("a+b")),
      ("key=a+b", .refused),
      ("key=a&key=b", .refused),
      ("key=", .none),
      ("", .none),
    ] as [(String, Expected)])
  func `a form's field is a key`(body: String, expected: Expected) {
    check(Request("application/x-www-form-urlencoded; charset=UTF-8", body), .form("key"), expected)
    check(Request("text/plain", body), .form("key"), .none)
  }

  private static func part(_ disposition: String, _ content: String) -> String {
    "--XX\r\nContent-Type: text/plain\r\ncontent-disposition: \(disposition)\r\n\r\n\(content)\r\n"
  }

  @Test(
    arguments: [
      (part(#"form-data; name="key""#, "abc"), .key("abc")),
      (part("form-data; name=key", "abc"), .key("abc")),
      (part(#"FORM-DATA; NAME="key""#, "abc"), .key("abc")),
      (part(#"form-data; name="a""#, "x") + part(#"form-data; name="key""#, "abc"), .key("abc")),
      (part(#"form-data; name="key""#, ""), .none),
      (part(#"form-data; name="keys""#, "abc"), .none),
      (part(#"form-data; name="key"; filename="a""#, "abc"), .none),
      (part(#"form-data; name="key""#, "a") + part(#"form-data; name="key""#, "b"), .refused),
      (part(#"form-data; name="key""#, "a\r\nb"), .refused),
    ] as [(String, Expected)])
  func `a multipart form's field is a key`(parts: String, expected: Expected) {
    check(Request("multipart/form-data; boundary=XX", parts + "--XX--\r\n"), .form("key"), expected)
    check(Request("multipart/form-data", parts + "--XX--\r\n"), .form("key"), .none)
    check(Request("multipart/form-data; boundary=XX", parts), .form("key"), .none)
  }
}
