import Idempotency
import NIOCore
import TestSupport
import Testing
import Wire

@testable import Transport

/// The bytes of a response.
struct ResponseBytesTests {
  /// Sends one request, to which the server responds with these bytes, and after which it closes if `closing` is true.
  private func exchange(
    _ method: String = "GET", respondedBy bytes: String, closing: Bool = false
  ) async throws -> Result<ReceivedResponse, UpstreamFailure> {
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write(bytes)
      if !closing { connection.readToEnd() }
    }
    return try await Harness.run { harness async throws in
      do {
        return .success(try await harness.upstream.begin(.to(server, method)).finish())
      } catch let failure as UpstreamFailure {
        return .failure(failure)
      }
    }
  }

  static let whole: [(bytes: String, response: ReceivedResponse)] = [
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ReceivedResponse(status: 200, body: "ok")),
    ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", ReceivedResponse(status: 200, body: "")),
    ("HTTP/1.1 204 No Content\r\n\r\n", ReceivedResponse(status: 204, body: "")),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", ReceivedResponse(status: 304, body: "")),
    (
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1;x=y\r\n!\r\n0\r\n\r\n",
      ReceivedResponse(status: 200, body: "ok!")
    ),
    (
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\nX-Other: a b\r\n\r\n",
      ReceivedResponse(status: 200, body: "ok", trailers: "X-Sum: 7\r\nX-Other: a b\r\n")
    ),
    (
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
        + "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", ReceivedResponse(status: 201, body: "ok")
    ),
    (
      "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok",
      ReceivedResponse(status: 200, body: "ok")
    ),
    (
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nraw",
      ReceivedResponse(status: 200, body: "raw")
    ),
    (
      "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
      ReceivedResponse(status: 302, body: "")
    ),
    (
      "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
      ReceivedResponse(status: 401, body: "")
    ),
  ]

  @Test(arguments: whole.indices)
  func `a response is whole by its framing`(index: Int) async throws {
    let (bytes, expected) = Self.whole[index]
    #expect(try await exchange(respondedBy: bytes).get() == expected)
  }

  @Test func `a response to HEAD has no body whatever its fields state`() async throws {
    for fields in ["Content-Length: 500\r\n", "Transfer-Encoding: chunked\r\n", ""] {
      let response = try await exchange("HEAD", respondedBy: "HTTP/1.1 200 OK\r\n\(fields)\r\n").get()
      #expect(response == ReceivedResponse(status: 200, body: ""))
    }
  }

  /// Read tolerantly, and put right.
  static let tolerated = [
    "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nok\r\n0\r\n\r\n",
  ]

  @Test(arguments: tolerated)
  func `a response whose faults leave it one meaning is whole`(bytes: String) async throws {
    #expect(try await exchange(respondedBy: bytes).get() == ReceivedResponse(status: 200, body: "ok"))
  }

  /// The first is ended by the backend, and so are the others that lack something.
  static let malformed = [
    "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
    "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\0c\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\rc\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
  ]

  @Test(arguments: malformed)
  func `of a response that cannot be read behind its status line, the status is reported`(bytes: String)
    async throws
  {
    let result = try await exchange("POST", respondedBy: bytes, closing: true)
    guard case .failure(.malformed(200, _)) = result else {
      Issue.record("\(bytes.debugDescription) passed as \(result)")
      return
    }
  }

  @Test func `a reset leaves no status, since more may have been under way`() async throws {
    let gate = ScriptGate()
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
      gate.pass()
      connection.reset()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server))
      _ = try await exchange.head(within: .seconds(10))
      gate.open()
      #expect(await exchange.failure()?.isResponseLost == true)
    }
  }

  static let broken = [
    "", "HTTP/1.1 200", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "HTTP/1.1 103 Early\r\nA: b\0c\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
    "SSH-2.0-OpenSSH\r\n", "hello",
  ]

  @Test(arguments: broken)
  func `a response without a final status line is lost`(bytes: String) async throws {
    let result = try await exchange(respondedBy: bytes, closing: true)
    guard case .failure(let failure) = result else {
      Issue.record("\(bytes.debugDescription) passed as \(result)")
      return
    }
    #expect(failure.isResponseLost, "\(bytes.debugDescription): \(failure)")
  }

  @Test func `a response that ends with its connection is marked as such`() async throws {
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nX: 1\r\n\r\nto the end")
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server))
      let head = try await exchange.head(within: nil)
      #expect(head.isDelimitedByClose)
      #expect(head.head.fields(named: "x").map { head.head.string($0.valueRange) } == ["1"])
      #expect(try await exchange.finish() == ReceivedResponse(status: 200, body: "to the end"))
    }
  }

  @Test func `read throws for a body that breaks off, after the bytes that arrived`() async throws {
    let gate = ScriptGate()
    let server = try RawServer { connection in
      try connection.readRequest()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
      gate.pass()
      connection.reset()
    }
    try await Harness.run { harness async throws in
      let exchange = harness.upstream.begin(.to(server))
      defer { exchange.close() }
      let head = try await exchange.head(within: nil)
      #expect(head.head.status == 200)
      let piece = try await exchange.read(within: nil)
      #expect(piece == ByteBuffer(string: "abc"))
      gate.open()
      await #expect(throws: UpstreamFailure.self) { try await exchange.read(within: nil) }
    }
  }

  @Test func `collect needs no head before it, and takeReady reports the end`() async throws {
    let server = try RawServer { connection in
      while true {
        try connection.readRequest()
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
    }
    try await Harness.run { harness async throws in
      let first = harness.upstream.begin(.to(server))
      guard case .whole(let body) = try await first.collect(upTo: 100, within: .seconds(5)) else {
        Issue.record("two bytes are too many")
        return
      }
      #expect(String(buffer: body) == "ok")
      let head = try await first.head(within: nil)
      #expect(head.head.status == 200)
      first.close()

      let second = harness.upstream.begin(.to(server))
      _ = try await second.head(within: .seconds(5))
      let ready = second.takeReady()
      #expect(String(buffer: ready.bytes) == "ok" && ready.isEnd)
      second.close()
    }
  }
}
