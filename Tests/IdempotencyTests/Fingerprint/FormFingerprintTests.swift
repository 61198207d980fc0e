import Idempotency
import Testing

/// Forms, in both their media types.
struct FormFingerprintTests {
  private func form(_ body: String) -> Digest256 {
    Request("application/x-www-form-urlencoded", body).fingerprint().digest
  }

  @Test(arguments: [
    ("a=1&b=2", "b=2&a=1"), ("a=+", "a=%20"), ("a=%41%2f", "a=A/"), ("a", "a="), ("&a=1&", "a=1"), ("", "&"),
    ("%61=1&b=2", "b=2&a=1"), ("a=%c3%a4", "a=%C3%A4"), ("a=1&c=3&a=2", "c=3&a=1&a=2"),
  ])
  func `equal forms are equal`(left: String, right: String) {
    #expect(form(left) == form(right))
    #expect(!Request("application/x-www-form-urlencoded", left).isFingerprintedRaw)
  }

  @Test(arguments: [
    ("a=1", "a=2"), ("a=1", "b=1"), ("a=1&a=2", "a=2&a=1"), ("a=+", "a=%2B"), ("a=b%26c=d", "a=b&c=d"),
    ("a=", ""),
    ("ab=c", "a=bc"), ("a=b=c", "a%3Db=c"),
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
    "", "--B", "--B--", "--B--\r\n", "x" + plain, "\r\n" + plain, plain + "x", String(plain.dropLast(5)),
    "--B\r\nX: 1\r\n--B--\r\n",
    "--B\n\n1\n--B--\n", "--B\r\n\r\n1\r\n", "--B\r\n--B--\r\n",
  ])
  func `a body that is not entirely parts counts as bytes`(body: String) {
    #expect(multipart("B", body).isFingerprintedRaw)
  }

  @Test(arguments: [
    "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=B; boundary=B",
    "multipart/mixed; boundary=B",
    "multipart/form-data; boundary=" + String(repeating: "B", count: 71),
  ])
  func `without one boundary the body counts as bytes`(type: String) {
    #expect(multipart("B", Self.plain, type: type).isFingerprintedRaw)
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
