import Testing

@testable import Idempotency

/// Parts of a payload that are left out of its fingerprint, or that alone count.
struct PayloadPartTests {
  private static let form = "application/x-www-form-urlencoded"

  private func parts(_ texts: [String]) throws -> [PayloadPart] {
    try texts.map { try #require(PayloadPart(text: $0), "\($0)") }
  }

  private func digest(
    _ body: String, _ type: String = "application/json", query: String? = nil, ignore: [String] = [],
    only: [String] = []
  ) throws -> Digest256 {
    var request = Request(type, body)
    request.query = query
    return request.fingerprint(Recipe(ignore: try parts(ignore), only: try parts(only))).digest
  }

  @Test(arguments: ["/a/*/b", "/", "query:a", "query:a:b", "form:a b", "part:file", "part-filename"])
  func `the notation is read back`(text: String) throws {
    let part = try #require(PayloadPart(text: text))
    #expect(part.text == text)
    let recipe = Recipe(ignore: [.json("/x"), part])
    let read = try #require(Recipe(text: recipe.text))
    #expect(read == recipe && read.ignore == recipe.ignore)
    guard part != .fileNames else { return }
    let only = Recipe(only: [part], contentLimit: 5)
    let readOnly = try #require(Recipe(text: only.text))
    #expect(readOnly == only && readOnly.only == [part] && readOnly.ignore.isEmpty)
  }

  @Test(arguments: ["", "a", "query:", "json:/a", "header:a", "part-filename:a", "/~2", "query"])
  func `another notation is none`(text: String) {
    #expect(PayloadPart(text: text) == nil)
  }

  @Test func `the text of a recipe keeps what earlier versions know apart`() {
    let recipe = Recipe(headers: ["h"], ignore: [.query("t,;"), .json("/b"), .json("/a/*")])
    #expect(recipe.text == "2;auto;h=h;i=/b;x=query:t%2C%3B,/a/*")
    #expect(Recipe(only: [.json("/a/*"), .json("/b")]).text == "2;auto;o=/a/*,/b")
    for text in ["1;auto;x=query:t", "1;auto;o=/a", "2;auto;x=/a", "2;auto;x=a", "2;auto;o=", "2;auto;x="] {
      #expect(Recipe(text: text) == nil, "\(text)")
    }
  }

  @Test func `an asterisk in an earlier record's recipe is a name`() throws {
    let recipe = try #require(Recipe(text: "2;auto;i=/items/*/at"))
    #expect(recipe.text == "2;auto;i=/items/*/at" && recipe != Recipe(ignore: [.json("/items/*/at")]))
    func digest(_ body: String) -> Digest256 { Request("application/json", body).fingerprint(recipe).digest }
    #expect(digest(#"{"items":[{"at":1}]}"#) != digest(#"{"items":[{"at":2}]}"#))
    #expect(digest(#"{"items":{"*":{"at":1}}}"#) == digest(#"{"items":{"*":{"at":2}}}"#))
  }

  @Test func `keys of payloads are made by the first recipe as long as that knows all parts`() {
    #expect(Recipe(ignore: [.json("/a")], contentLimit: 9).ofKeys.text == "1;auto;i=/a")
    #expect(Recipe(ignore: [.json("/a/*/b")], contentLimit: 9).ofKeys.text == "2;auto;x=/a/*/b")
    let only = Recipe(only: [.json("/a")], contentLimit: 9).ofKeys
    #expect(only.text == "2;auto;o=/a" && only.ofKeys == only)
    #expect(IdempotencyKey(payload: Request("text/plain", #"{"a":1}"#).fingerprint(only)).isOfPayload)
  }

  /// Written down once, from a model of the bytes in another language.
  @Test func `the fingerprints are those that records hold`() throws {
    let only = try digest(#"{"a":1,"b":[{"c":2},{"c":3}]}"#, only: ["/b/1/c"])
    #expect(only.text == "peH8MrQiKKJ99KuybojSsHOY0K8DlBNKQ8kqJh5fYDk")
    let ignored = try digest(
      #"{"items":[{"at":1,"x":2}]}"#, query: "t=5&a=1", ignore: ["/items/*/at", "query:t"])
    #expect(ignored.text == "Cf04KOa2rV0rwNtljOluYo08jjUp7Q3re17tqfaG8tQ")
    let body = Self.multipart(("a", nil, "1"), ("f", "x.pdf", "PDF"))
    let parts = try digest(body, Self.multipartType, ignore: ["part:a", "part-filename"])
    #expect(parts.text == "Kj37ain2ft_opSz8IPLiQumV-y5eyg-q5CXpFvMVztM")
  }

  // Members of JSON.

  @Test(arguments: [
    (["/items/*/at"], #"{"items":[{"at":1,"x":1},{"at":2}]}"#, #"{"items":[{"x":1},{"at":3}]}"#),
    (["/*/at"], #"[{"at":1},{"at":2}]"#, "[{},{}]"),
    (["/a/*/b/*/c"], #"{"a":[{"b":[{"c":1},2]}]}"#, #"{"a":[{"b":[{"c":2},2]}]}"#),
    (["/a/*"], #"{"a":{"*":1,"b":2}}"#, #"{"a":{"b":2}}"#),
  ])
  func `an asterisk stands for all elements`(ignore: [String], left: String, right: String) throws {
    #expect(try digest(left, ignore: ignore) == digest(right, ignore: ignore))
    #expect(try digest(left) != digest(right))
  }

  @Test(arguments: [
    (["/items/*/at"], #"{"items":[{"at":1,"x":1}]}"#, #"{"items":[{"at":1,"x":2}]}"#),
    (["/items/*/at"], #"{"items":[{"at":1}]}"#, #"{"items":[{"at":1},{"at":1}]}"#),
    (["/items/*/at"], #"{"items":{"a":{"at":1}}}"#, #"{"items":{"a":{"at":2}}}"#),
    (["/items/*"], #"{"items":[1]}"#, #"{"items":[2]}"#),
  ])
  func `other members still count`(ignore: [String], left: String, right: String) throws {
    #expect(try digest(left, ignore: ignore) != digest(right, ignore: ignore))
  }

  @Test(arguments: [
    (["/id"], #"{"id":1,"at":5}"#, #"{"at":{"x":[6]},"id":1.0}"#),
    (["/id"], #"{"id":1,"at":5}"#, #"{"\u0069d":1}"#), (["/id"], #"{"at":5}"#, "{}"),
    (["/a/b", "/c"], #"{"a":{"b":{"x":1},"y":2},"c":3}"#, #"{"c":3,"a":{"b":{"x":1}}}"#),
    (["/a", "/a/b"], #"{"a":{"b":1,"c":2}}"#, #"{"a":{"b":1,"c":2},"d":3}"#),
    (["/items/*/sku"], #"{"items":[{"sku":1,"n":1},{"n":2}]}"#, #"{"items":[{"sku":1},{}]}"#),
    (["/items/1"], #"{"items":[1,[2,3],4]}"#, #"{"items":[5,[2,3]]}"#),
  ])
  func `only what the pointers name counts`(only: [String], left: String, right: String) throws {
    #expect(try digest(left, only: only) == digest(right, only: only))
    #expect(try digest(left) != digest(right))
  }

  @Test(arguments: [
    (["/id"], #"{"id":1}"#, #"{"id":2}"#), (["/id"], #"{"id":null}"#, "{}"),
    (["/id"], #"{"id":{"x":1}}"#, #"{"id":{"x":2}}"#),
    (["/items/*/sku"], #"{"items":[{"sku":1},{"sku":2}]}"#, #"{"items":[{"sku":2},{"sku":1}]}"#),
    (["/items/*/sku"], #"{"items":[{"sku":1}]}"#, #"{"items":[{"sku":1},{}]}"#),
    (["/items/0", "/items/2"], #"{"items":[1,2]}"#, #"{"items":[3,1,2]}"#),
    // A value of another kind than the pointers expect counts as a whole.
    (["/a/b"], #"{"a":1}"#, #"{"a":2}"#), (["/a/b"], #"{"a":[{"b":1}]}"#, #"{"a":[{"b":2}]}"#),
    (["/id"], #"[{"id":1,"x":1}]"#, #"[{"id":1,"x":2}]"#),
  ])
  func `what the pointers name makes a difference`(only: [String], left: String, right: String) throws {
    #expect(try digest(left, only: only) != digest(right, only: only))
  }

  @Test(arguments: ["text/plain; charset=UTF-8", "application/octet-stream", form])
  func `members count alone in JSON of any type`(type: String) throws {
    let (first, second) = (#"{"MessageId":"m","Timestamp":1}"#, #" { "Timestamp": 2, "MessageId": "m" } "#)
    #expect(try digest(first, type, only: ["/MessageId"]) == digest(second, type, only: ["/MessageId"]))
    #expect(try digest(first, type) != digest(second, type))
    let other = #"{"MessageId":"n","Timestamp":1}"#
    #expect(try digest(first, type, only: ["/MessageId"]) != digest(other, type, only: ["/MessageId"]))
    // Without a pointer, such a text stays what its type says.
    #expect(try digest(first, type, ignore: ["query:t"]) == digest(first, type))
  }

  @Test func `a body of a kind of which nothing is named counts as a whole`() throws {
    for (type, left, right) in [
      ("text/plain", "a", "b"), ("application/json", #"{"a":1,"a":1}"#, #"{"a":1,"a":2}"#),
      (Self.form, "a=1", "a=2"), ("application/json", "{", "["),
    ] {
      #expect(try digest(left, type, only: ["/id"]) != digest(right, type, only: ["/id"]))
    }
    #expect(try digest(#"{"a":1}"#, only: ["form:a"]) != digest(#"{"a":2}"#, only: ["form:a"]))
    #expect(try digest("a=1", Self.form, only: ["part:a"]) != digest("a=2", Self.form, only: ["part:a"]))
    // The query counts unless parameters of it are named, and nothing of the body does if none of its parts is.
    #expect(try digest("{}", query: "a=1", only: ["/id"]) != digest("{}", query: "a=2", only: ["/id"]))
    #expect(
      try digest(#"{"a":1}"#, query: "q=1", only: ["query:q"]) == digest("", query: "q=1", only: ["query:q"]))
    #expect(
      Recipe(only: [.query("q")]).leavesOutBody && !Recipe(body: .raw, only: [.query("q")]).leavesOutBody)
  }

  // Pairs.

  @Test(arguments: [
    (["a"], "a=1&b=2", "b=2&a=3"), (["a"], "a=1&b=2&a=2", "b=2"), (["a"], "%61=1&b=2", "b=2"),
    (["a", "c"], "a&b=2&c=", "b=2"), (["items[]"], "items%5B%5D=1&c=1&b=2", "b=2&c=1"), (["a"], "a=1", ""),
  ])
  func `named pairs are left out`(names: [String], left: String, right: String) throws {
    let (queries, fields) = (names.map { "query:\($0)" }, names.map { "form:\($0)" })
    #expect(try digest("", query: left, ignore: queries) == digest("", query: right, ignore: queries))
    #expect(try digest(left, Self.form, ignore: fields) == digest(right, Self.form, ignore: fields))
    #expect(try digest(left, Self.form) != digest(right, Self.form))
    #expect(try digest(left, Self.form, ignore: queries) != digest(right, Self.form, ignore: queries))
    #expect(try digest("", query: left, ignore: fields) != digest("", query: right, ignore: fields))
  }

  @Test(arguments: [
    (["a"], "a=1&b=2", "a=1&b=3"), (["a"], "A=1&b=2", "b=2"), (["a"], "a.b=1", "a.b=2"),
    // Some readers find another pair behind a semicolon.
    (["a"], "a=1;amount=5", "a=1;amount=6"),
  ])
  func `pairs that are not named, or may be others, still count`(names: [String], left: String, right: String)
    throws
  {
    let (queries, fields) = (names.map { "query:\($0)" }, names.map { "form:\($0)" })
    #expect(try digest("", query: left, ignore: queries) != digest("", query: right, ignore: queries))
    #expect(try digest(left, Self.form, ignore: fields) != digest(right, Self.form, ignore: fields))
  }

  @Test(arguments: [("a=1&b=2", "b=3&a=1"), ("a=1&b[]=2&c.d=1", "c.d=2&a=1"), ("b=1", "")])
  func `only named pairs count`(left: String, right: String) throws {
    #expect(try digest("", query: left, only: ["query:a"]) == digest("", query: right, only: ["query:a"]))
    #expect(try digest(left, Self.form, only: ["form:a"]) == digest(right, Self.form, only: ["form:a"]))
  }

  @Test(arguments: [
    ("a=1", "a=2"), ("a=1&a=2", "a=2&a=1"), ("a", ""), ("b=1;a=1", "b=1;a=2"), ("+a=1", "+a=2"),
    ("a%00x=1", "a%00x=2"),
  ])
  func `pairs that some readers take for a named one count`(left: String, right: String) throws {
    #expect(try digest("", query: left, only: ["query:a"]) != digest("", query: right, only: ["query:a"]))
    #expect(try digest(left, Self.form, only: ["form:a"]) != digest(right, Self.form, only: ["form:a"]))
  }

  // Parts of multipart bodies.

  private static let multipartType = "multipart/form-data; boundary=B"

  /// A body of parts, each with its name, the name of its file and its content.
  private static func multipart(_ parts: (name: String, file: String?, content: String)...) -> String {
    let texts = parts.map { name, file, content in
      let fields =
        "Content-Disposition: form-data; name=\"\(name)\""
        + (file.map { "; filename=\"\($0)\"\r\nContent-Type: application/pdf" } ?? "")
      return "--B\r\n\(fields)\r\n\r\n\(content)\r\n"
    }
    return texts.joined() + "--B--\r\n"
  }

  private func multipart(
    _ parts: (name: String, file: String?, content: String)..., ignore: [String] = [], only: [String] = []
  ) throws -> Digest256 {
    let texts = parts.map { Self.multipart($0).dropLast("--B--\r\n".count) }
    return try digest(texts.joined() + "--B--\r\n", Self.multipartType, ignore: ignore, only: only)
  }

  @Test func `named parts are left out, and fields only where they are no files`() throws {
    for ignore in [["form:t"], ["part:t"]] {
      #expect(
        try multipart(("t", nil, "1"), ("a", nil, "2"), ignore: ignore)
          == multipart(("a", nil, "2"), ("t", nil, "3"), ignore: ignore))
      #expect(
        try multipart(("t", nil, "1"), ("a", nil, "2"), ignore: ignore)
          != multipart(("t", nil, "1"), ("a", nil, "3"), ignore: ignore))
    }
    let (one, other) = (("t", "f.pdf" as String?, "1"), ("t", "f.pdf" as String?, "2"))
    #expect(try multipart(one, ignore: ["part:t"]) == multipart(other, ignore: ["part:t"]))
    #expect(try multipart(one, ignore: ["form:t"]) != multipart(other, ignore: ["form:t"]))
    // A head that readers may take differently.
    let folded = Self.multipart(("t", nil, "1")).replacing("; name", with: ";\r\n name")
    #expect(
      try digest(folded, Self.multipartType, ignore: ["part:t"])
        != digest(folded.replacing("1", with: "2"), Self.multipartType, ignore: ["part:t"]))
  }

  @Test func `only named parts count, and what may be one`() throws {
    let (a, b) = (("a", nil as String?, "1"), ("b", nil as String?, "2"))
    let (file, other) = (("f", "x" as String?, "1"), ("f", "x" as String?, "2"))
    for only in [["form:a"], ["part:a"]] {
      #expect(try multipart(a, b, only: only) == multipart(b, a, file, only: only))
      #expect(try multipart(a, b, only: only) != multipart(b, only: only))
    }
    #expect(try multipart(file, a, only: ["part:f"]) == multipart(file, b, only: ["part:f"]))
    #expect(try multipart(file, only: ["part:f"]) != multipart(other, only: ["part:f"]))
    // Some readers take a file for the field of its name.
    #expect(try multipart(file, only: ["form:f"]) != multipart(other, only: ["form:f"]))
    let folded = Self.multipart(b).replacing("; name", with: ";\r\n name")
    #expect(
      try digest(folded, Self.multipartType, only: ["part:a"])
        != digest(folded.replacing("2", with: "3"), Self.multipartType, only: ["part:a"]))
  }

  @Test func `names of files may be left out, and their contents not`() throws {
    let ignore = ["part-filename"]
    let one = try multipart(("f", "a.pdf", "1"), ignore: ignore)
    #expect(try multipart(("f", "another name.pdf", "1"), ignore: ignore) == one)
    #expect(try multipart(("f", "a.pdf", "2"), ignore: ignore) != one)
    #expect(try multipart(("g", "a.pdf", "1"), ignore: ignore) != one)
    // A file is no field.
    let field = Self.multipart(("f", "a.pdf", "1")).replacing("; filename=\"a.pdf\"", with: "")
    #expect(try digest(field, Self.multipartType, ignore: ignore) != one)
    let extended = Self.multipart(("f", "a.pdf", "1"))
      .replacing("; filename=", with: "; filename*=utf-8''caf%C3%A9.pdf; filename=")
    #expect(try digest(extended, Self.multipartType, ignore: ignore) == one)
    #expect(try multipart(("f", "a.pdf", "1")) != multipart(("f", "b.pdf", "1")))
  }

  // The questions of settings and operators.

  @Test func `an array is led through by an asterisk or by indices`() throws {
    for texts in [["/a/*/b", "/a/0/c"], ["/x", "/*", "/1/b"], ["/a/*/b/*", "/a/*/b/2"]] {
      #expect(PayloadPart.clashing(try parts(texts)) != nil, "\(texts)")
    }
    for texts in [["/a/*/b", "/a/*/c"], ["/a/*/b", "/c/0/b"], ["/a/*", "/a/b"], ["query:*", "/0"]] {
      #expect(PayloadPart.clashing(try parts(texts)) == nil, "\(texts)")
    }
  }

  @Test func `a recipe says which parts it leaves out`() {
    let ignore = Recipe(ignore: [.json("/a"), .json("/i/*/b"), .query("q")])
    for part: PayloadPart in [.json("/a"), .json("/a/b"), .json("/i/0/b"), .query("q")] {
      #expect(ignore.leavesOut(part))
    }
    for part: PayloadPart in [.json("/ab"), .json("/i/0"), .json("/i/x/b"), .query("r"), .form("q")] {
      #expect(!ignore.leavesOut(part))
    }
    let only = Recipe(only: [.json("/a/b")])
    #expect(only.leavesOut(.json("/c")) && !only.leavesOut(.json("/a/b/c")) && !only.leavesOut(.json("/a")))
    #expect(!only.leavesOut(.query("q")) && !only.leavesOut(.form("q")))
    #expect(Recipe(body: .none).leavesOut(.json("/a")) && !Recipe(body: .none).leavesOut(.query("a")))
  }
}
