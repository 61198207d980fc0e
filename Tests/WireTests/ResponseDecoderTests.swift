import NIOCore
import Testing
import Wire
import WireOracle

struct ResponseDecoderTests {
  private static func message(
    _ line: String, _ fields: [String] = [], _ body: String = "", trailers: String = "",
    isComplete: Bool = true
  ) -> Decoded.Message {
    Decoded.Message(
      startLine: line, fields: fields, body: body.bytes, trailers: trailers, isComplete: isComplete)
  }

  static let accepted: [(String, MessageHead.Method, [Decoded.Message], ResponseDecoder.InputEnd)] = [
    (
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", .get,
      [message("200 OK 1.1 length(2) keep-alive", ["Content-Length: 2"], "hi")], .idle
    ),
    (
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103\r\nLink: x\r\n\r\nHTTP/1.1 201 \r\nContent-Length: 0\r\n\r\n",
      .post,
      [
        message("100 Continue 1.1 none keep-alive", isComplete: false),
        message("103  1.1 none keep-alive", ["Link: x"], isComplete: false),
        message("201  1.1 length(0) keep-alive", ["Content-Length: 0"]),
      ], .idle
    ),
    (
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n", .get,
      [
        message(
          "200 OK 1.1 chunked keep-alive", ["Transfer-Encoding: chunked"], "hi", trailers: "X-Sum: 1\r\n")
      ], .idle
    ),
    (
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 2\r\nX-Sum: 1\r\n\r\n", .get,
      [
        message("200 OK 1.1 chunked keep-alive", ["Transfer-Encoding: chunked"], trailers: "X-Sum: 1\r\n")
      ], .idle
    ),
    (
      "HTTP/1.0 200 OK\r\n\r\nuntil the end", .get,
      [message("200 OK 1.0 untilClose close", [], "until the end", isComplete: false)], .complete
    ),
    (
      "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", .head,
      [message("200 OK 1.1 none keep-alive doubtful", ["Content-Length: 20"])], .idle
    ),
    (
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 20\r\n\r\n", .get,
      [message("304 Not Modified 1.1 none keep-alive doubtful", ["Content-Length: 20"])], .idle
    ),
    ("HTTP/1.1 204 No Content\r\n\r\n", .delete, [message("204 No Content 1.1 none keep-alive")], .idle),
    (
      "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", .delete,
      [message("204 No Content 1.1 none close doubtful", ["Content-Length: 5"])], .idle
    ),
    (
      "HTTP/1.1 205 Reset\r\nContent-Length: 2\r\n\r\nhi", .post,
      [message("205 Reset 1.1 length(2) keep-alive doubtful", ["Content-Length: 2"], "hi")], .idle
    ),
    (
      "HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n", .post,
      [message("205 Reset 1.1 length(0) keep-alive", ["Content-Length: 0"])], .idle
    ),
    ("HTTP/1.1 200 OK\r\n\r\n", .connect, [message("200 OK 1.1 none keep-alive")], .idle),
    (
      "HTTP/1.1 101 Switching Protocols\r\n\r\nraw", .get,
      [message("101 Switching Protocols 1.1 none close")], .idle
    ),
    (
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", .get,
      [message("200 OK 1.1 length(5) keep-alive", ["Content-Length: 5"], "hi", isComplete: false)], .truncated
    ),
    (
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", .get,
      [
        message("200 OK 1.1 chunked keep-alive", ["Transfer-Encoding: chunked"], "hi", isComplete: false)
      ], .truncated
    ),
    ("HTTP/1.1 200 OK\r\nContent-Le", .get, [], .truncated),
    ("", .get, [], .truncated),
  ]

  @Test(arguments: accepted.indices)
  func `a response is read as the RFC specifies, wherever it is cut`(_ index: Int) {
    let (text, method, messages, end) = Self.accepted[index]
    let bytes = text.bytes
    for cuts in [[], Array(0...bytes.count)] + (0...bytes.count).map({ [$0] }) {
      let (decoded, found) = Decoded.response(bytes, to: method, cuts: cuts)
      #expect(decoded.messages == messages && decoded.error == nil, "cut at \(cuts)")
      #expect(found == end)
    }
  }

  static let refused: [(String, WireError)] = [
    ("HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", .spaceBeforeColon),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: a\r\n b\r\n\r\n", .foldedField),
    ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", .repeatedContentLength),
    ("HTTP/1.1 200 OK\r\nContent-Length:\t1\r\n\r\n", .badContentLength),
    (
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      .badTransferCoding
    ),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\n", .badChunk),
    ("HTTP/1.1 20 OK\r\n\r\n", .badStatusLine),
    ("HTTP/1.1 099 OK\r\n\r\n", .badStatusLine),
    ("HTTP/1.1 2000 OK\r\n\r\n", .badStatusLine),
    ("HTTP/1.1  200 OK\r\n\r\n", .badStatusLine),
    ("HTTP/2.0 200 OK\r\n\r\n", .badStatusLine),
    ("ICY 200 OK\r\n\r\n", .badStatusLine),
    ("HTTP/1.1 200 O\u{1}K\r\n\r\n", .badStatusLine),
    ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", .badLineEnd),
    ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", .repeatedContentLength),
    ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", .lengthAndTransferCoding),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", .badTransferCoding),
    ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .transferCodingInHTTP10),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", .badChunk),
  ]

  @Test(arguments: refused)
  func `a malformed response is refused`(_ text: String, _ error: WireError) {
    let (decoded, end) = Decoded.response(text.bytes)
    #expect(decoded.error == error)
    #expect(end == .truncated)
  }

  @Test
  func `responses on one connection are matched with their methods in order`() throws {
    var decoder = ResponseDecoder(method: .head)
    var input = ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    input.writeString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    while try decoder.next(&input) != nil {}
    #expect(input.readableBytes == 40)
    decoder.begin(.get)
    var body = ""
    while let event = try decoder.next(&input) {
      if case .body(let piece) = event { body += String(buffer: piece) }
    }
    #expect(body == "hi")
    #expect(decoder.finish() == .idle)
  }
}
