import Idempotency
import NIOCore
import Testing

struct RecordedResponseTests {
  @Test(arguments: [
    ("", ""), ("A: 1\r\n", "A: 1\r\n"), ("Age: 7\r\n", ""),
    ("A: 1\r\nage: 7\r\nB: 2\r\n", "A: 1\r\nB: 2\r\n"),
    ("RETRY-AFTER: 1\r\nX-Should-Retry: true\r\nA: Age: 7\r\n", "A: Age: 7\r\n"),
    ("Ages: 7\r\nAge-: 7\r\nX-Age: 1\r\n", "Ages: 7\r\nAge-: 7\r\nX-Age: 1\r\n"),
    ("A: 1\r\nDate: x\r\nAlt-Svc: x\r\nServer-Timing: x\r\n", "A: 1\r\n"),
    ("Age: 1\r\nA: 1\r\nAge: 2\r\nB: 1\r\nAge: 3\r\n", "A: 1\r\nB: 1\r\n"),
    ("A:\r\nB: \tö\r\n", "A:\r\nB: \tö\r\n"),
  ])
  func `fields that an earlier version recorded of one moment are dropped`(lines: String, kept: String) throws
  {
    // Behind other bytes, as it stands in a store's reply.
    var bytes = ByteBuffer(string: "head" + lines)
    bytes.moveReaderIndex(forwardBy: 4)
    let response = try #require(
      RecordedResponse(stored: 200, fields: bytes, body: bytes, trailers: bytes))
    #expect(String(buffer: response.fields) == kept)
    #expect(String(buffer: response.trailers) == kept)
    #expect(response.body == bytes)
  }

  @Test(arguments: [
    "Age: 7", "A", "A\r\n", ": 1\r\n", "A B: 1\r\n", "A: 1\n", "A: 1\r\n\r\n", "\r\n", "A: \0\r\n",
    "A: \r1\r\n",
    "A: \u{7F}\r\n",
  ])
  func `what is damaged is no response`(lines: String) {
    let (bytes, none) = (ByteBuffer(string: lines), ByteBuffer())
    #expect(RecordedResponse(stored: 200, fields: bytes, body: none, trailers: none) == nil)
    #expect(RecordedResponse(stored: 200, fields: none, body: none, trailers: bytes) == nil)
  }

  @Test(arguments: [0, 99, 100, 199, 1000, -1, Int.max])
  func `nor is one of another status than a final one`(status: Int) {
    let none = ByteBuffer()
    #expect(RecordedResponse(stored: status, fields: none, body: none, trailers: none) == nil)
  }
}
