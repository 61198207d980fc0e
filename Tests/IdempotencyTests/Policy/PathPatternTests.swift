import Idempotency
import Testing

struct PathPatternTests {
  private func fits(_ pattern: String, _ path: String) throws -> Bool {
    let pattern = try PathPattern(parsing: pattern)
    return Array(path.utf8).withUnsafeBytes { pattern.matches($0) }
  }

  @Test(arguments: [
    ("/", "/"), ("/v1/orders", "/v1/orders"), ("/v1/orders/", "/v1/orders/"),
    ("/v1/orders/{id}", "/v1/orders/7"), ("/v1/{a}/x/{b-c_1}", "/v1/1/x/2"),
    ("/v1/**", "/v1"), ("/v1/**", "/v1/"), ("/v1/**", "/v1/a"), ("/v1/**", "/v1/a/b/"),
    ("/v1/{id}/**", "/v1/7/a"),
    ("/**", "/"), ("/**", "/a"), ("/**", "/a//b"), ("/a//b", "/a//b"),
    ("/%7Euser/%2c", "/~user/%2C"), ("/%61%3a", "/a%3A"), ("/café au", "/caf%C3%A9%20au"),
    ("/a:b@c;d=e", "/a:b@c;d=e"),
  ]) func `a pattern fits its paths`(pattern: String, path: String) throws {
    #expect(try fits(pattern, path))
  }

  @Test(arguments: [
    ("/", "/a"), ("/", ""), ("/", "*"), ("/a", "/A"), ("/v1/orders", "/v1/orders/"),
    ("/v1/orders/", "/v1/orders"),
    ("/v1/orders", "/v1/order"), ("/v1/orders", "/v1/orderss"), ("/v1/orders/{id}", "/v1/orders"),
    ("/v1/orders/{id}", "/v1/orders/"), ("/v1/orders/{id}", "/v1/orders/7/items"), ("/v1/**", "/v10"),
    ("/v1/**", "/v2/a"), ("/v1/{id}/**", "/v1"), ("/v1/{id}/**", "/v1/"), ("/**", "*"), ("/**", ""),
    ("/a//b", "/a/b"),
    ("/x", "xx"),
  ]) func `a pattern fits no other path`(pattern: String, path: String) throws {
    #expect(try !fits(pattern, path))
  }

  @Test(arguments: [
    ("", "must begin with a slash, such as /v1/orders/{id} or /v1/**"),
    ("v1", "must begin with a slash, such as /v1/orders/{id} or /v1/**"),
    ("**", "must begin with a slash, such as /v1/orders/{id} or /v1/**"),
    ("/a/*", "may hold ** only as its last segment; one segment is {name}"),
    ("/**/a", "may hold ** only as its last segment; one segment is {name}"),
    ("/a**", "may hold ** only as its last segment; one segment is {name}"),
    ("/a{b}", "must have {name} as a whole segment; a name has letters, digits, - and _"),
    ("/{}", "must have {name} as a whole segment; a name has letters, digits, - and _"),
    ("/{a", "must have {name} as a whole segment; a name has letters, digits, - and _"),
    ("/{a.b}", "must have {name} as a whole segment; a name has letters, digits, - and _"),
    ("/a/../b", "must not have . or .. as a segment: they are removed before it is matched"),
    ("/a/%2e", "must not have . or .. as a segment: they are removed before it is matched"),
    ("/%", "has a % that two hexadecimal digits do not follow"),
    ("/%+1", "has a % that two hexadecimal digits do not follow"),
    ("/%2", "has a % that two hexadecimal digits do not follow"),
    ("/a%2fb", "must not have an encoded slash, backslash or NUL: such requests are refused"),
    ("/a%5C", "must not have an encoded slash, backslash or NUL: such requests are refused"),
    ("/a%00", "must not have an encoded slash, backslash or NUL: such requests are refused"),
    ("/a?b", "must not have a query or a fragment: only the path is matched"),
    ("/a#b", "must not have a query or a fragment: only the path is matched"),
    ("/a\\b", "must not have a backslash: such requests are refused"),
  ]) func `what no normalised path can fit is refused`(text: String, reason: String) {
    let error = #expect(throws: PathPattern.ParsingError.self) { try PathPattern(parsing: text) }
    #expect(error?.reason == reason)
  }
}
