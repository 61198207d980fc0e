import Idempotency
import NIOCore
import Testing
import Wire

@testable import Proxy

/// The response encoder.
struct ResponseEncoderTests {
  private static func request(_ text: String) throws -> RequestHead {
    var decoder = RequestDecoder(limits: HeadLimits())
    var bytes = ByteBuffer(string: text)
    guard case .head(let head) = try decoder.next(&bytes) else {
      preconditionFailure("the sample is a whole request head")
    }
    return head
  }

  private static func record(
    status: Int = 201, fields: String = "Content-Type: text/plain\r\n", body: String = "made",
    trailers: String = ""
  ) -> (CompletedRecord, RecordedResponse) {
    let response = RecordedResponse(
      status: status, fields: ByteBuffer(string: fields), body: ByteBuffer(string: body),
      trailers: ByteBuffer(string: trailers))
    let record = CompletedRecord(
      outcome: .whole(response), recordedAt: StoreInstant(milliseconds: 1_700_000_000_000),
      expiresAt: StoreInstant(milliseconds: 1_700_086_400_000), remaining: 86_400_000, attempt: 1)
    return (record, response)
  }

  private static func replay(
    _ request: String, isClosing: Bool = false, _ sample: (CompletedRecord, RecordedResponse) = record()
  ) throws -> String {
    let head = try Self.request(request)
    return String(
      buffer: ResponseEncoder.whole(
        ClientResponse(replaying: sample.0, sample.1, to: head.head.method),
        minorVersion: head.head.minorVersion,
        isClosing: isClosing, now: { 1_700_000_100 }))
  }

  @Test func `replays status, fields and body, with Idempotency-Status: replayed`() throws {
    #expect(
      try Self.replay("POST /o HTTP/1.1\r\nHost: a\r\n\r\n") == """
        HTTP/1.1 201 Created\r
        Content-Type: text/plain\r
        Date: Tue, 14 Nov 2023 22:15:00 GMT\r
        Age: 100\r
        Idempotency-Status: replayed\r
        Idempotent-Replayed: true\r
        Idempotency-Recorded-At: Tue, 14 Nov 2023 22:13:20 GMT\r
        Idempotency-Expires: Wed, 15 Nov 2023 22:13:20 GMT\r
        Content-Length: 4\r
        \r
        made
        """)
  }

  @Test(arguments: [(1_700_000_100, 7, 107), (1_699_999_000, 7, 7), (1_699_999_000, 0, 0)])
  func `a replay's age is that of the response and that of the record`(now: Int, recorded: Int, age: Int)
    throws
  {
    let sample = Self.record()
    let head = ClientResponse(replaying: sample.0, sample.1, age: recorded, to: .post).head
    var fields = ByteBuffer()
    head.writeFields(into: &fields, now: { now })
    #expect(String(buffer: fields).contains("\r\nAge: \(age)\r\n"))
  }

  @Test func `a replay of a response to HEAD keeps its Content-Length, and has no body`() throws {
    let response = try Self.replay(
      "HEAD /o HTTP/1.1\r\nHost: a\r\n\r\n",
      Self.record(status: 200, fields: "Content-Length: 1234\r\n", body: ""))
    #expect(response.contains("Content-Length: 1234\r\n"))
    #expect(response.hasSuffix("\r\n\r\n"))
    #expect(!response.contains("Content-Length: 0"))
  }

  @Test(arguments: [204, 304])
  func `a response without a body by its status gets no length`(status: Int) throws {
    let response = try Self.replay(
      "POST /o HTTP/1.1\r\nHost: a\r\n\r\n", Self.record(status: status, fields: "", body: ""))
    #expect(!response.contains("Content-Length"))
    #expect(!response.contains("Transfer-Encoding"))
    #expect(response.hasSuffix("\r\n\r\n"))
  }

  @Test func `trailers need chunks, which HTTP 1 0 does not know`() throws {
    let sample = Self.record(trailers: "Checksum: 7\r\n")
    let chunked = try Self.replay("POST /o HTTP/1.1\r\nHost: a\r\n\r\n", sample)
    #expect(chunked.contains("Transfer-Encoding: chunked\r\n"))
    #expect(chunked.hasSuffix("\r\n\r\n4\r\nmade\r\n0\r\nChecksum: 7\r\n\r\n"))
    let old = try Self.replay("POST /o HTTP/1.0\r\nHost: a\r\n\r\n", isClosing: true, sample)
    #expect(old.contains("Content-Length: 4\r\n"))
    #expect(!old.contains("chunked"))
    #expect(old.hasSuffix("\r\n\r\nmade"))
  }

  @Test func `keep-alive is announced to HTTP 1 0, and close to both versions`() throws {
    let stays = try Self.replay("POST /o HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
    #expect(stays.contains("Connection: keep-alive\r\n"))
    let closes = try Self.replay("POST /o HTTP/1.1\r\nHost: a\r\n\r\n", isClosing: true)
    #expect(closes.contains("Connection: close\r\n"))
  }

  @Test func `a refusal is a problem document that no cache stores`() throws {
    let response = String(
      buffer: ResponseEncoder.whole(
        ClientResponse(.inFlight(retryAfter: 1000)), minorVersion: 1, isClosing: false))
    #expect(response.hasPrefix("HTTP/1.1 409 Conflict\r\n"))
    #expect(response.contains("Content-Type: application/problem+json\r\n"))
    #expect(response.contains("Cache-Control: no-store\r\n"))
    #expect(response.contains("Link: </.well-known/idempotency#in_flight>; rel=\"describedby\"\r\n"))
    #expect(response.contains("X-Should-Retry: true\r\n"))
    #expect(response.contains("Retry-After: 1\r\n"))
    #expect(response.contains("\"code\":\"in_flight\",\"retryable\":true}"))
  }

  @Test func `a refusal to HEAD states the length of its document and omits it`() throws {
    let response = String(
      buffer: ResponseEncoder.whole(ClientResponse(.keyExpired, to: .head), minorVersion: 1, isClosing: false)
    )
    #expect(response.contains("Content-Length: "))
    #expect(response.hasSuffix("\r\n\r\n"))
    #expect(!response.contains("Content-Length: 0\r\n"))
  }
}
