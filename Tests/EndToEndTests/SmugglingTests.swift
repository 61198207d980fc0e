import TestSupport
import Testing

/// Requests whose end two servers may see at different places: refused, and nothing reaches the backend.
struct SmugglingTests {
  struct Case: Sendable {
    let name: String
    /// From the method's first byte on.
    let bytes: String
  }

  private static func post(_ fields: String, _ body: String = "") -> String {
    "POST /v1/orders HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nIdempotency-Key: k\r\n\(fields)\r\n\(body)"
  }

  static let cases: [Case] = [
    Case(
      name: "length and chunks",
      bytes: post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
    Case(name: "two lengths", bytes: post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}x")),
    Case(name: "two equal lengths", bytes: post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}")),
    Case(name: "a list of lengths", bytes: post("Content-Length: 2, 2\r\n", "{}")),
    Case(name: "a signed length", bytes: post("Content-Length: +2\r\n", "{}")),
    Case(name: "a negative length", bytes: post("Content-Length: -2\r\n", "{}")),
    Case(name: "a hexadecimal length", bytes: post("Content-Length: 0x2\r\n", "{}")),
    Case(name: "an empty length", bytes: post("Content-Length:\r\n", "{}")),
    Case(name: "a length past all integers", bytes: post("Content-Length: 18446744073709551618\r\n", "{}")),
    Case(name: "a length with a space in it", bytes: post("Content-Length: 2 2\r\n", "{}")),
    Case(name: "a folded line", bytes: post("X-Fold: a\r\n b\r\nContent-Length: 2\r\n", "{}")),
    Case(name: "a folded framing", bytes: post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")),
    Case(name: "white space before a colon", bytes: post("Content-Length : 2\r\n", "{}")),
    Case(name: "white space before the first field", bytes: "POST /v1/orders HTTP/1.1\r\n Host: h\r\n\r\n"),
    Case(name: "NUL in a value", bytes: post("X-Nul: a\0b\r\nContent-Length: 2\r\n", "{}")),
    Case(name: "a bare CR in a value", bytes: post("X-Cr: a\rb\r\nContent-Length: 2\r\n", "{}")),
    Case(name: "a field without a colon", bytes: post("Content-Length\r\n", "{}")),
    Case(name: "a field without a name", bytes: post(": 2\r\n", "{}")),
    Case(name: "a space in a name", bytes: post("Content Length: 2\r\n", "{}")),
    Case(name: "two hosts", bytes: post("Host: other\r\nContent-Length: 2\r\n", "{}")),
    Case(name: "no host", bytes: "POST /v1/orders HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"),
    Case(name: "an unknown coding", bytes: post("Transfer-Encoding: gzip\r\n", "0\r\n\r\n")),
    Case(
      name: "chunked is not the last coding", bytes: post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n")
    ),
    Case(name: "chunked twice", bytes: post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n")),
    Case(
      name: "two codings",
      bytes: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n")),
    Case(
      name: "a coding that only looks like chunked",
      bytes: post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")),
    Case(
      name: "a vertical tab before chunked", bytes: post("Transfer-Encoding: \u{0B}chunked\r\n", "0\r\n\r\n")),
    Case(
      name: "chunks in HTTP/1.0",
      bytes:
        "POST /v1/orders HTTP/1.0\r\nHost: h\r\nAuthorization: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    Case(
      name: "a chunk size that is no number", bytes: post("Transfer-Encoding: chunked\r\n", "xyz\r\n\r\n")),
    Case(name: "a signed chunk size", bytes: post("Transfer-Encoding: chunked\r\n", "+2\r\n{}\r\n0\r\n\r\n")),
    Case(
      name: "a chunk size with 0x", bytes: post("Transfer-Encoding: chunked\r\n", "0x2\r\n{}\r\n0\r\n\r\n")),
    Case(name: "no chunk size", bytes: post("Transfer-Encoding: chunked\r\n", "\r\n{}\r\n0\r\n\r\n")),
    Case(
      name: "a chunk size past all integers",
      bytes: post("Transfer-Encoding: chunked\r\n", "10000000000000002\r\n{}\r\n0\r\n\r\n")),
    Case(
      name: "a chunk longer than its size",
      bytes: post("Transfer-Encoding: chunked\r\n", "1\r\n{}\r\n0\r\n\r\n")),
    Case(
      name: "a chunk size that ends with LF",
      bytes: post("Transfer-Encoding: chunked\r\n", "2\n{}\r\n0\r\n\r\n")),
    Case(name: "a version that is not there", bytes: "POST /v1/orders HTTP/1.2x\r\nHost: h\r\n\r\n"),
    Case(name: "no version", bytes: "POST /v1/orders\r\nHost: h\r\n\r\n"),
    Case(name: "a method that is no token", bytes: "PO(ST /v1/orders HTTP/1.1\r\nHost: h\r\n\r\n"),
    Case(
      name: "a control character in the target", bytes: "GET /v1/\u{01}orders HTTP/1.1\r\nHost: h\r\n\r\n"),
    Case(name: "a space in the target", bytes: "GET /v1/ orders HTTP/1.1\r\nHost: h\r\n\r\n"),
  ]

  /// One process for the whole table: each case is a connection of its own.
  @Test func `ambiguous framing is refused, the connection closed, and nothing reaches the backend`()
    async throws
  {
    try await Rig.run { rig in
      for ambiguous in Self.cases {
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send(ambiguous.bytes + "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
        do {
          let response = try await connection.response()
          #expect(response.status == 400, "\(ambiguous.name): \(response.text)")
          #expect(response.problem?.status == 400, "\(ambiguous.name)")
          let rest = try await connection.closedByPeer()
          #expect(rest.isEmpty, "\(ambiguous.name): \(String(decoding: rest, as: UTF8.self))")
        } catch {
          Issue.record(error, "\(ambiguous.name)")
        }
        #expect(rig.backend.log.value.begun == 0, "\(ambiguous.name)")
      }
    }
  }

  @Test func `an ambiguous request that is passed through is refused too`() async throws {
    try await Rig.run { rig in
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(
        "POST /open HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
      #expect(try await connection.response().status == 400)
      #expect(try await connection.closedByPeer().isEmpty)
      #expect(rig.backend.log.value.begun == 0)
    }
  }
}
