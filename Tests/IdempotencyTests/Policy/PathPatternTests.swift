import Idempotency
import Testing

struct PathPatternTests {
  private func fits(
    _ pattern: String, _ path: String, _ spelling: RoutePolicy.Spelling = .exact
  ) throws -> Bool {
    let matcher = PathMatcher(try PathPattern(parsing: pattern), spelling: spelling)
    return Array(path.utf8).withUnsafeBytes { matcher.matches($0) }
  }

  @Test(arguments: [
    ("/", "/"), ("/v1/orders", "/v1/orders"), ("/v1/orders/", "/v1/orders/"),
    ("/v1/orders/{id}", "/v1/orders/7"), ("/v1/{a}/x/{b-c_1}", "/v1/1/x/2"),
    ("/v1/**", "/v1"), ("/v1/**", "/v1/"), ("/v1/**", "/v1/a"), ("/v1/**", "/v1/a/b/"),
    ("/v1/{id}/**", "/v1/7/a"),
    ("/**", "/"), ("/**", "/a"), ("/**", "/a//b"), ("/a//b", "/a//b"),
    ("/%7Euser/%2c", "/~user/%2C"), ("/%61%3a", "/a%3A"), ("/café au", "/caf%C3%A9%20au"),
    ("/a:b@c;d=e", "/a:b@c;d=e"),
  ]) func `a pattern matches its paths`(pattern: String, path: String) throws {
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
  ]) func `a pattern matches no other path`(pattern: String, path: String) throws {
    #expect(try !fits(pattern, path))
  }

  @Test(arguments: [
    ("/v1/orders", "/v1/orders"), ("/v1/orders", "/v1//orders"), ("/v1/orders", "//v1/orders"),
    ("/v1/orders", "/v1/orders/"), ("/v1/orders", "/v1/orders///"), ("/v1/orders", "/v1/orders;x=1"),
    ("/v1/orders", "/v1;a;b/orders;c/"), ("/v1/orders", "/;x/v1/;y//orders/;z"),
    ("/v1/orders", "/v1/orders;/"), ("/", "/"), ("/", "//"), ("/", "/;x"), ("/v1/orders/", "/v1/orders"),
    ("/a//b", "/a/b"), ("/a;x=1/b", "/a/b"), ("/v1/{id}", "/v1/7;x/"), ("/v1/{id}/x", "/v1//7/x"),
    ("/v1/**", "/v1"), ("/v1/**", "//v1;x"), ("/v1/**", "/v1//a/b/"), ("/**", "/"), ("/v1/{id}/**", "/v1/7"),
  ]) func `slashes and parameters do not count, unless the route is strict`(pattern: String, path: String)
    throws
  {
    #expect(try fits(pattern, path, .lenient))
    #expect(try fits(pattern, path, .caseless))
    #expect(try fits(pattern, path.uppercased(), .caseless))
  }

  @Test(arguments: [
    ("/v1/orders:cancel", "/v1/orders%3Acancel"), ("/v1/orders%3Acancel", "/v1/orders:cancel"),
    ("/v1/a+b@c", "/v1/a%2Bb%40c"), ("/v1/a%3Bb", "/v1/a%3Bb;x"), ("/v1/{id}/a:", "/v1/%3A/a%3A"),
  ]) func `encoded characters do not count, unless the route is strict`(pattern: String, path: String) throws
  {
    #expect(try fits(pattern, path, .lenient))
    #expect(try fits(pattern, path, .caseless))
    #expect(try !fits(pattern, path, .exact))
  }

  @Test(arguments: [
    ("/v1/100%253A", "/v1/100%3A"), ("/v1/100%3A", "/v1/100%253A"), ("/v1/a:", "/v1/a%3A%3A"),
    ("/v1/a::", "/v1/a%3A"), ("/v1/a", "/v1/a%3Bx"), ("/v1/a%3Bb", "/v1/a;b"),
  ]) func `nothing is decoded twice, and encoded data is no syntax`(pattern: String, path: String) throws {
    #expect(try !fits(pattern, path, .lenient))
    #expect(try !fits(pattern, path, .caseless))
  }

  @Test(arguments: [
    ("/v1/orders", "/v1/Orders"), ("/v1/orders", "/v1/orders/7"), ("/v1/orders", "/v1"), ("/v1/orders", "/"),
    ("/v1/orders", "/v1/order;s"), ("/v1/orders", "v1/orders"), ("/v1/orders", "*"), ("/v1/orders", ""),
    ("/v1/{id}", "/v1/"), ("/v1/{id}", "/v1//"), ("/v1/{id}", "/v1/;x"), ("/v1/{id}", "/v1/7/8"),
    ("/", "/a"), ("/v1/**", "/v10"), ("/v1/{id}/**", "/v1/"), ("/**", "*"),
  ]) func `other differences of a path count`(pattern: String, path: String) throws {
    #expect(try !fits(pattern, path, .lenient))
  }

  @Test(arguments: [
    ("/orders/:id", "/orders/{id}"), ("/orders/:orderId/refunds", "/orders/{orderId}/refunds"),
    ("/orders/<id>", "/orders/{id}"), ("/orders/<int:id>/x", "/orders/{id}/x"), ("/f/<path:rest>", "/f/**"),
    ("/orders/[id]", "/orders/{id}"), ("/f/[...slug]", "/f/**"), ("/f/[[...slug]]", "/f/**"),
    ("/orders/{id:[^/]+}/x", "/orders/{id}/x"), (#"/orders/{id:\d+}"#, "/orders/{id}"),
    ("/orders/{id:int}", "/orders/{id}"), ("/orders/{id?}", "/orders/{id}"), ("/f/{*rest}", "/f/**"),
    ("/f/{rest...}", "/f/**"), ("/f/{proxy+}", "/f/**"), ("/f/{p:path}", "/f/**"), ("/{{id}}/x", "/{id}/x"),
    (#"^/orders/(\d+)$"#, "/orders/{id}"), ("/orders/(.*)", "/orders/**"), ("/orders/.*", "/orders/**"),
    ("/orders/[0-9]+/x", "/orders/{id}/x"), (#"/o/(?P<pk>\w+)/x"#, "/o/{pk}/x"), ("/f/:path*", "/f/**"),
    ("/f/$", "/f/**"), ("^/f/$", "/f/"),
  ]) func `another framework's notation is refused with the right form`(text: String, form: String) throws {
    let error = #expect(throws: PathPattern.ParsingError.self) { try PathPattern(parsing: text) }
    #expect(
      error?.reason
        == "is in the notation of another framework; write \(form) ({name} is one segment, ** at the end is the rest)"
    )
    _ = try PathPattern(parsing: form)
  }

  @Test(arguments: [
    "/orders:batch", "/Orders(42)", "/$batch", "/a+b", "/a-[b", "/@me", "/a!b", "/orders.json",
  ])
  func `signs within a segment are no notation`(text: String) throws {
    #expect(try fits(text, text))
  }

  @Test(arguments: [
    ("", "must begin with a slash, such as /v1/orders/{id} or /v1/**"),
    ("v1", "must begin with a slash, such as /v1/orders/{id} or /v1/**"),
    ("**", "must begin with a slash, such as /v1/orders/{id} or /v1/**"),
    ("/a ", "must not end with white space: no request has that path"),
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
  ]) func `a pattern that no normalised path matches is refused`(text: String, reason: String) {
    let error = #expect(throws: PathPattern.ParsingError.self) { try PathPattern(parsing: text) }
    #expect(error?.reason == reason)
  }
}
