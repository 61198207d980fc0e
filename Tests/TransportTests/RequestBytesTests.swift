import Idempotency
import NIOCore
import TestSupport
import Testing

@testable import Transport

/// The bytes of a request.
struct RequestBytesTests {
  /// The bytes that the backend reads for a request.
  private func bytes(
    _ method: String, _ target: String = "/a?b=c", fields: String = "Host: example.org\r\nX-A: 1\r\n",
    body: RequestBody = .none
  ) async throws -> String {
    let server = try RawServer { connection in
      while true {
        try connection.readRequest()
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      }
    }
    return try await Harness.run { harness async throws in
      // A first one of another kind: nothing of it may stick to the connection.
      _ = try await harness.upstream.begin(.to(server, "PUT", body: .whole(ByteBuffer(string: "before"))))
        .finish()
      _ = try await harness.upstream.begin(.to(server, method, target, fields: fields, body: body)).finish()
      return server.tally.received[1]
    }
  }

  private static let fields = "Host: example.org\r\nX-A: 1\r\n"

  @Test(arguments: ["POST", "PUT", "PATCH"])
  func `a method that expects content states that there is none`(method: String) async throws {
    #expect(
      try await bytes(method) == "\(method) /a?b=c HTTP/1.1\r\n\(Self.fields)Content-Length: 0\r\n\r\n")
  }

  @Test(arguments: ["GET", "HEAD", "DELETE", "OPTIONS", "get", "PROPFIND"])
  func `a request without content gets neither a length nor fields of the transport`(method: String)
    async throws
  {
    #expect(try await bytes(method) == "\(method) /a?b=c HTTP/1.1\r\n\(Self.fields)\r\n")
  }

  @Test(arguments: ["GET", "POST", "DELETE", "PUT", "PATCH"])
  func `a whole body is sent with its length`(method: String) async throws {
    let got = try await bytes(method, body: .whole(ByteBuffer(string: "{}")))
    #expect(got == "\(method) /a?b=c HTTP/1.1\r\n\(Self.fields)Content-Length: 2\r\n\r\n{}")
  }

  @Test(arguments: ["POST", "DELETE", "PUT"])
  func `an empty body has a length too`(method: String) async throws {
    let got = try await bytes(method, body: .whole(ByteBuffer()))
    #expect(got == "\(method) /a?b=c HTTP/1.1\r\n\(Self.fields)Content-Length: 0\r\n\r\n")
  }

  @Test func `HEAD with a body sends it and awaits none`() async throws {
    let got = try await bytes("HEAD", body: .whole(ByteBuffer(string: "{}")))
    #expect(got == "HEAD /a?b=c HTTP/1.1\r\n\(Self.fields)Content-Length: 2\r\n\r\n{}")
  }

  @Test func `a large body is sent without Expect`() async throws {
    let body = String(repeating: "x", count: 3 << 20)
    let got = try await bytes("POST", body: .whole(ByteBuffer(string: body)))
    #expect(got == "POST /a?b=c HTTP/1.1\r\n\(Self.fields)Content-Length: \(3 << 20)\r\n\r\n\(body)")
  }

  @Test func `a streamed body of known length is sent with it`() async throws {
    let got = try await bytes("PUT", body: .streamed(Pieces(["ab", "", "cde"]), length: 5))
    #expect(got == "PUT /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nabcde")
    let empty = try await bytes("POST", body: .streamed(Pieces([]), length: 0))
    #expect(empty == "POST /a?b=c HTTP/1.1\r\n\(Self.fields)Content-Length: 0\r\n\r\n")
  }

  @Test func `a streamed body of unknown length is sent in chunks`() async throws {
    let got = try await bytes("POST", body: .streamed(Pieces(["ab", "cde"]), length: nil))
    let fields = "Host: example.org\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n"
    let head = "POST /a?b=c HTTP/1.1\r\n\(fields)\r\n"
    #expect(got == head + "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n")
  }

  @Test func `many fields arrive unchanged and in order`() async throws {
    var fields = "Host: example.org:8080\r\nAccept: text/html\r\nUser-Agent: own\r\nContent-Type: text/x\r\n"
    fields +=
      "Cookie: a=b\r\nAuthorization: Bearer x\r\nX-Empty:\r\nx-lower:no-space\r\nX-Trail: a \r\nRange: bytes=0-1\r\n"
    for index in 0..<20 { fields += "X-\(index): value; \"\(index)\": \u{e9}\r\n" }
    #expect(try await bytes("GET", fields: fields) == "GET /a?b=c HTTP/1.1\r\n\(fields)\r\n")
  }

  @Test(arguments: ["/", "/a/../b", "/%2e%2e/x", "//double", "/a?b=/../c", "/sp%20ce?", "*"])
  func `the target is sent as it is`(target: String) async throws {
    #expect(try await bytes("GET", target) == "GET \(target) HTTP/1.1\r\n\(Self.fields)\r\n")
  }
}
