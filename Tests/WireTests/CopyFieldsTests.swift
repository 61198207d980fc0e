import NIOCore
import Testing
import Wire

struct CopyFieldsTests {
  private func copied(
    _ lines: String, omitting omitted: FieldNameSet = [],
    underscored: UnderscoredFields = .passed(except: [])
  ) throws -> String {
    let head = try head(lines)
    var output = ByteBuffer()
    head.copyFields(into: &output, omitting: omitted, underscored: underscored)
    return String(buffer: output)
  }

  private func head(_ lines: String) throws -> MessageHead {
    var decoder = RequestDecoder()
    var input = ByteBuffer(string: "GET / HTTP/1.0\r\n\(lines)\r\n")
    guard case .head(let request)? = try decoder.next(&input) else { throw WireError.badRequestLine }
    return request.head
  }

  @Test(arguments: [
    ("", ""), ("A: b\r\nC: d\r\n", "A: b\r\nC: d\r\n"),
    ("A:b\r\nC: \td \r\nE:\r\n", "A: b\r\nC: d\r\nE: \r\n"),
    ("A: b\r\nC:d\r\nE: f\r\nG: h\r\n", "A: b\r\nC: d\r\nE: f\r\nG: h\r\n"),
    (
      "Keep-Alive: 1\r\nA: b\r\nTE: x\r\nTrailer: x\r\nUpgrade: x\r\nC: d\r\nProxy-Connection: x\r\nE: f\r\n",
      "A: b\r\nC: d\r\nE: f\r\n"
    ),
    ("Proxy-Authenticate: x\r\nProxy-Authorization: x\r\n", ""),
    ("A: b\r\nConnection: c, Accept\r\nAccept: x\r\nC: d\r\nE: f\r\nConnection: e\r\n", "A: b\r\n"),
    ("Connection: close\r\nClose: 1\r\nX-Close: 1\r\n", "Close: 1\r\nX-Close: 1\r\n"),
  ])
  func `hop-by-hop lines are omitted`(_ lines: String, _ expected: String) throws {
    #expect(try copied(lines) == expected)
  }

  @Test
  func `the lines that the caller names are omitted`() throws {
    let lines = "Host: a\r\nA: b\r\nContent-Length: 0\r\nC: d\r\nhost-x: e\r\n"
    #expect(try copied(lines, omitting: [.length, FieldNameSet(.host)]) == "A: b\r\nC: d\r\nhost-x: e\r\n")
  }

  @Test
  func `Semel's own request fields are known in every spelling`() throws {
    let lines = """
      Idempotency_Request_Id: 1\r\nIDEMPOTENCY-REQUEST_ID: 2\r\nidempotency_attempt: 3\r
      Idempotency-Attempt: 4\r\nIdempotency-Request-Id: 5\r\nIdempotency_Key: 6\r\nIdempotency_Attempts: 7\r

      """
    let kept = "Idempotency_Key: 6\r\nIdempotency_Attempts: 7\r\n"
    #expect(try copied(lines, omitting: .ownRequest, underscored: .passed(except: .ownRequest)) == kept)
    #expect(try copied(lines, omitting: .ownRequest, underscored: .dropped) == "")
    #expect(
      try copied("A: b\r\n" + lines + "C: d\r\n_: e\r\n", omitting: .ownRequest, underscored: .dropped)
        == "A: b\r\nC: d\r\n")
    #expect(try copied(lines) == lines)
  }

  @Test
  func `Connection names fields`() throws {
    let head = try head("Connection: close, X-Key\r\nConnection:idempotency-key\r\n")
    #expect(head.connectionNames("x-key"))
    #expect(head.connectionNames("idempotency-key"))
    #expect(head.connectionNames(.idempotencyKey))
    #expect(!head.connectionNames("x-ke"))
    #expect(!head.connectionNames(.host))
    #expect(try !self.head("X: idempotency-key\r\n").connectionNames(.idempotencyKey))
  }

  @Test
  func `a constructed head is copied like a parsed one`() throws {
    var head = try MessageHead(method: "GET", target: "/")
    head.append("Host", "a", as: .host)
    try head.append(name: "x-b", value: "c")
    try head.append(name: "te", value: "trailers")
    var output = ByteBuffer()
    head.copyFields(into: &output)
    #expect(String(buffer: output) == "Host: a\r\nx-b: c\r\n")
  }

  @Test(arguments: [("x y", "a"), ("", "a"), ("x:", "a"), ("x", "a\r\nb: c"), ("x", "a\0")])
  func `a constructed head refuses a malformed field`(_ name: String, _ value: String) throws {
    var head = try MessageHead(method: "GET", target: "/")
    #expect(throws: WireError.self) { try head.append(name: name, value: value) }
    #expect(head.fields.isEmpty)
  }
}
