import Idempotency
import Testing

/// Forms, in both their media types.
struct FormFingerprintTests {
  private func form(_ body: String) -> Digest256 {
    Request("application/x-www-form-urlencoded", body).fingerprint().digest
  }

  @Test(arguments: [
    ("a=1&b=2", "b=2&a=1"), ("a=+", "a=%20"), ("a=%41%2f", "a=A/"), ("a", "a="), ("&a=1&", "a=1"), ("", "&"),
    ("%61=1&b=2", "b=2&a=1"), ("a=%c3%a4", "a=%C3%A4"), ("a%5d=1&b=2", "b=2&a]=1"),
    ("items[][n]=A&items[][n]=B", "items%5B%5D[n]=A&items[][n]=B"),
  ])
  func `equal forms are equal`(left: String, right: String) {
    #expect(form(left) == form(right))
    #expect(!Request("application/x-www-form-urlencoded", left).isFingerprintedRaw)
  }

  @Test(arguments: [
    ("a=1", "a=2"), ("a=1", "b=1"), ("a=1&a=2", "a=2&a=1"), ("a=+", "a=%2B"), ("a=b%26c=d", "a=b&c=d"),
    ("a=", ""),
    ("ab=c", "a=bc"), ("a=b=c", "a%3Db=c"), ("a=1&c=3&a=2", "c=3&a=1&a=2"), ("a=1&A=2", "A=2&a=1"),
    ("a=1&%41=2", "A=2&a=1"), ("b.c=1&a=2", "a=2&b.c=1"), ("b%5Bc]=1&a=2", "a=2&b%5Bc]=1"),
    (
      "items[][name]=A&items[][price]=900&items[][name]=B",
      "items[][name]=A&items[][name]=B&items[][price]=900"
    ),
    ("longer_name=1&c=3&LONGER_name=2", "c=3&longer_name=1&LONGER_name=2"),
    ("a+b=1&a_b=2", "a_b=2&a+b=1"), ("+a=1&a=2", "a=2&+a=1"), ("a%00x=1&a=2", "a=2&a%00x=1"),
  ])
  func `different forms differ`(left: String, right: String) {
    #expect(form(left) != form(right))
  }

  private func multipart(_ boundary: String, _ body: String, type: String? = nil) -> Request {
    Request(type ?? "multipart/form-data; boundary=\(boundary)", body)
  }

  private static let plain = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B--\r\n"

  @Test func `the boundary makes no difference`() {
    func body(_ boundary: String) -> String {
      "--\(boundary)\r\nX: 1\r\n\r\none\r\n--\(boundary)\r\n\r\ntwo\r\n\r\n--\(boundary)--\r\n"
    }
    let one = multipart("B", body("B"))
    #expect(!one.isFingerprintedRaw)
    for boundary in ["C", "----WebKitFormBoundaryAbC", "a'()+_,-./:=?"] {
      let type = "Multipart/Form-Data; charset=utf-8; Boundary=\"\(boundary)\""
      #expect(multipart(boundary, body(boundary), type: type).fingerprint() == one.fingerprint())
    }
    #expect(multipart("B", String(body("B").dropLast())).fingerprint() == one.fingerprint())
    #expect(multipart("C", body("B")).isFingerprintedRaw)
  }

  @Test func `parts differ by fields, content, number and order`() {
    let bodies = [
      "--B\r\nX: 1\r\n\r\none\r\n--B\r\nX: 2\r\n\r\ntwo\r\n--B--\r\n",
      "--B\r\nX: 2\r\n\r\ntwo\r\n--B\r\nX: 1\r\n\r\none\r\n--B--\r\n",
      "--B\r\nX: 1\r\n\r\none\r\n--B--\r\n",
      "--B\r\nX: 1\r\n\r\none \r\n--B--\r\n",
      "--B\r\nX: 1\r\n\r\none\r\n\r\n--B--\r\n",
      "--B\r\nX: 2\r\n\r\none\r\n--B--\r\n",
      "--B\r\nX: 1\r\nY: 2\r\n\r\none\r\n--B--\r\n",
      "--B\r\nX: 1\r\n\r\nY: 2\r\n\r\none\r\n--B--\r\n",
      "--B\r\n\r\nX: 1\r\n\r\none\r\n--B--\r\n",
      "--B\r\nX: 1\r\n\r\none\r\n--BX\r\n--B--\r\n",
      "--B\r\nX: 1\r\n\r\none\r\n--\r\n--B--\r\n",
      "--B\r\nX: 1\r\n\r\n\r\n--B--\r\n",
      "--B\r\nX: 1\r\n\r\none--B\r\n--B--\r\n",
    ]
    let requests = bodies.map { multipart("B", $0) }
    for request in requests {
      #expect(!request.isFingerprintedRaw, "\(String(decoding: request.body, as: UTF8.self))")
    }
    #expect(Set(requests.map { $0.fingerprint() }).count == bodies.count)
  }

  @Test(arguments: [
    "", "--B", "--B--", "--B--\r\n", "x" + plain, plain + "x", String(plain.dropLast(5)),
    "--B\r\nX: 1\r\n--B--\r\n",
    "--B\n\n1\n--B--\n", "--B\r\n\r\n1\r\n", "--B\r\n--B--\r\n",
  ])
  func `a body that is not entirely parts counts as bytes`(body: String) {
    #expect(multipart("B", body).isFingerprintedRaw)
  }

  @Test(arguments: [
    "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=B; boundary=B",
    "multipartx/mixed; boundary=B",
    "multipart/form-data; boundary=" + String(repeating: "B", count: 71),
  ])
  func `without one boundary the body counts as bytes`(type: String) {
    #expect(multipart("B", Self.plain, type: type).isFingerprintedRaw)
  }

  @Test(arguments: ["multipart/mixed", "multipart/related; type=\"application/json\"", "Multipart/X-Batch"])
  func `parts of every multipart type are compared without their boundaries`(type: String) {
    func body(_ boundary: String, around: String = "") -> Request {
      multipart(
        boundary,
        around + "--\(boundary)\r\nContent-Type: a/b\r\n\r\none\r\n--\(boundary)--" + around,
        type: type + "; boundary=\"\(boundary)\"")
    }
    #expect(body("B").fingerprint() == body("CCC").fingerprint())
    #expect(body("B").fingerprint() == body("C", around: "\r\n").fingerprint())
    #expect(body("B").fingerprint(.one) != body("CCC").fingerprint(.one))
  }

  @Test func `parts within a part are compared without their boundaries`() {
    func inner(_ boundary: String, _ content: String) -> String {
      "--\(boundary)\r\n\r\n\(content)\r\n--\(boundary)--\r\n"
    }
    func body(_ type: String, _ boundary: String, _ content: String = "one") -> Request {
      multipart(
        "B",
        "--B\r\nX: 1\r\n\(type)\r\nY: 2\r\n\r\n" + inner(boundary, content) + "\r\n--B--\r\n",
        type: "multipart/mixed; boundary=B")
    }
    let one = body("Content-Type: multipart/mixed; boundary=C; a=b", "C")
    #expect(one.fingerprint() == body("Content-Type: multipart/mixed; boundary=DD; a=b", "DD").fingerprint())
    let others = [
      body("Content-Type: multipart/mixed; boundary=C; a=c", "C"),
      body("Content-Type: multipart/mixed; boundary=C; a=b", "C", "two"),
      body("Content-Type: text/plain; boundary=C; a=b", "C"),
      body("Content-Type: multipart/mixed; boundary=X; a=b", "C"),
      body("Content-Type: multipart/mixed;\r\n boundary=C; a=b", "C"),
      body(
        "Content-Type: multipart/mixed; boundary=C; a=b\r\nContent-Type: multipart/mixed; boundary=C", "C"),
    ]
    #expect(Set((others + [one]).map { $0.fingerprint() }).count == others.count + 1)
    #expect(others.allSatisfy { !$0.isFingerprintedRaw })
  }

  @Test func `parts are divided to a bounded depth`() {
    func body(_ depth: Int, _ innermost: String) -> String {
      let inner = depth == 1 ? innermost : body(depth - 1, innermost)
      let own = "\(innermost)\(depth)"
      return
        "--\(own)\r\nContent-Type: multipart/mixed; boundary=\(innermost)\(depth - 1)\r\n\r\n\(inner)\r\n--\(own)--\r\n"
    }
    func request(_ depth: Int, _ name: String) -> Request {
      multipart("", body(depth, name), type: "multipart/mixed; boundary=\(name)\(depth)")
    }
    // The innermost part is no multipart body, and names its boundary.
    #expect(request(100, "B").fingerprint() != request(100, "C").fingerprint())
    #expect(!request(100, "B").isFingerprintedRaw)
  }

  @Test(arguments: [(1, true), (4, true), (5, false)])
  func `parts within parts are compared without their boundaries to a depth of four`(
    depth: Int, isEqual: Bool
  ) {
    func body(_ depth: Int, _ name: String) -> String {
      guard depth > 0 else { return "one" }
      let type = depth > 1 ? "multipart/mixed; boundary=\(name)\(depth - 1)" : "a/b"
      let own = "--\(name)\(depth)"
      return "\(own)\r\nContent-Type: \(type)\r\n\r\n\(body(depth - 1, name))\r\n\(own)--\r\n"
    }
    func fingerprint(_ name: String) -> Fingerprint {
      multipart("", body(depth, name), type: "multipart/mixed; boundary=\(name)\(depth)").fingerprint()
    }
    #expect((fingerprint("B") == fingerprint("C")) == isEqual)
  }

  @Test func `with two media types the body counts as bytes`() {
    for (type, body) in [
      ("application/json", #"{"a":1}"#), ("application/x-www-form-urlencoded", "a=1"),
      ("multipart/form-data; boundary=B", Self.plain),
    ] {
      var request = Request(type, body)
      #expect(!request.isFingerprintedRaw)
      request.fields.append(request.fields[0])
      #expect(request.isFingerprintedRaw)
    }
  }

  @Test func `line ends and half boundaries cost no more than their length`() {
    let content = String(repeating: "\r\n--B", count: 40_000)
    #expect(!multipart("BC", "--BC\r\n\r\n\(content)\r\n--BC--\r\n").isFingerprintedRaw)
  }
}
