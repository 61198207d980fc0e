import NIOCore
import Testing
import Wire
import WireOracle

struct RequestDecoderTests {
  /// Bytes of requests, and what they mean.
  static let accepted: [(String, [Decoded.Message])] = [
    (
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      [.init(startLine: "GET / 1.1 none keep-alive", fields: ["Host: a"], isComplete: true)]
    ),
    (
      "\r\n\r\nGET /a?b=c HTTP/1.1\r\nhost:a.example:80\r\nX-Empty:\r\nX-Spaces: \t a b \t\r\n\r\n",
      [
        .init(
          startLine: "GET /a?b=c 1.1 none keep-alive",
          fields: ["host: a.example:80", "X-Empty: ", "X-Spaces: a b"], isComplete: true)
      ]
    ),
    (
      "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\nhello",
      [
        .init(
          startLine: "POST /x 1.1 length(5) keep-alive continue",
          fields: ["Host: a", "Content-Length: 5", "Expect: 100-Continue"], body: "hello".bytes,
          isComplete: true)
      ]
    ),
    (
      "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nConnection: Close\r\n\r\n"
        + "5\r\nhello\r\n00A;x=1;y=\"z z\"\r\n0123456789\r\n0\r\nX-Sum: 1\r\nCookie: dropped\r\n\r\n",
      [
        .init(
          startLine: "PUT /x 1.1 chunked close",
          fields: ["Host: a", "Transfer-Encoding: Chunked", "Connection: Close"],
          body: "hello0123456789".bytes,
          trailers: "X-Sum: 1\r\n", isComplete: true)
      ]
    ),
    (
      "GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\nConnection: foo, keep-alive\r\n\r\n",
      [
        .init(startLine: "GET / 1.0 none close", fields: [], isComplete: true),
        .init(
          startLine: "GET / 1.0 none keep-alive", fields: ["Connection: foo, keep-alive"], isComplete: true),
      ]
    ),
    (
      "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\nCONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
      [
        .init(startLine: "OPTIONS * 1.1 none keep-alive", fields: ["Host: "], isComplete: true),
        .init(startLine: "CONNECT a:443 1.1 none keep-alive", fields: ["Host: a:443"], isComplete: true),
      ]
    ),
    (
      "M-SEARCH http://[::1]:80?q HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\nPOST",
      [
        .init(
          startLine: "M-SEARCH http://[::1]:80?q 1.1 length(0) keep-alive",
          fields: ["Host: b", "Content-Length: 0"], isComplete: true)
      ]
    ),
  ]

  @Test(arguments: accepted)
  func `a request is read as the RFC specifies`(_ text: String, _ messages: [Decoded.Message]) {
    #expect(Decoded.requests(text.bytes) == Decoded(messages: messages))
  }

  @Test(arguments: accepted)
  func `a request is read the same wherever it is cut`(_ text: String, _ messages: [Decoded.Message]) {
    let bytes = text.bytes
    for cut in 0...bytes.count {
      #expect(Decoded.requests(bytes, cuts: [cut]) == Decoded(messages: messages), "cut at \(cut)")
    }
    #expect(Decoded.requests(bytes, cuts: Array(0...bytes.count)) == Decoded(messages: messages))
  }
}
