import NIOCore
import Testing
import Wire
import WireOracle

struct HeadLimitsTests {
  private let limits = HeadLimits(headBytes: 200, maxFields: 3)

  private func error(_ text: String) -> WireError? {
    let whole = Decoded.requests(text.bytes, limits: limits)
    let trickled = Decoded.requests(text.bytes, cuts: Array(0..<text.utf8.count), limits: limits)
    #expect(whole == trickled)
    return whole.error
  }

  private func filler(_ count: Int) -> String { String(repeating: "x", count: count) }

  @Test
  func `a head of exactly the limit passes, one byte more does not`() {
    let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
    let room = 200 - start.utf8.count - 4
    #expect(error("\(start)\(filler(room))\r\n\r\n") == nil)
    #expect(error("\(start)\(filler(room + 1))\r\n\r\n") == .headTooLarge)
  }

  @Test
  func `a head without an end is refused at the limit`() {
    #expect(error("GET /\(filler(300))") == .targetTooLong)
    #expect(error("GET /\(filler(300)) HTTP/1.1\r\nHost: a\r\n\r\n") == .targetTooLong)
    #expect(error("GET / HTTP/1.1\r\nX: \(filler(300))") == .headTooLarge)
  }

  @Test
  func `a line of exactly the limit passes, one byte more does not`() {
    let limits = HeadLimits(headBytes: 200, lineBytes: 30)
    func error(_ text: String) -> WireError? {
      let whole = Decoded.requests(text.bytes, limits: limits)
      #expect(whole == Decoded.requests(text.bytes, cuts: Array(0..<text.utf8.count), limits: limits))
      return whole.error
    }
    let line = 30 - "GET / HTTP/1.1\r\n".utf8.count
    #expect(error("GET /\(filler(line)) HTTP/1.1\r\nHost: a\r\n\r\n") == nil)
    #expect(error("GET /\(filler(line + 1)) HTTP/1.1\r\nHost: a\r\n\r\n") == .targetTooLong)
    #expect(error("GET / HTTP/1.1\r\nHost: a\r\nX: \(filler(25))\r\n\r\n") == nil)
    #expect(error("GET / HTTP/1.1\r\nHost: a\r\nX: \(filler(26))\r\n\r\n") == .headTooLarge)
    #expect(error("GET / HTTP/1.1\r\nHost: a\r\nX: \(filler(26))") == nil)
    #expect(error("GET / HTTP/1.1\r\nHost: a\r\nX: \(filler(27))") == .headTooLarge)
  }

  @Test
  func `fields are counted`() {
    #expect(error("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\n\r\n") == nil)
    #expect(error("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\nC:\r\n\r\n") == .tooManyFields)
  }

  @Test
  func `the trailer section has the same limits`() {
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    #expect(error("\(chunked)A:\r\nB:\r\nC:\r\nD:\r\n\r\n") == .tooManyFields)
    #expect(error("\(chunked)A: \(filler(300))\r\n\r\n") == .headTooLarge)
  }

  @Test
  func `small chunks with large extensions are refused in the end`() {
    let chunk = "1;\(filler(200))\r\nx\r\n"
    let body = String(repeating: chunk, count: 100)
    #expect(
      error("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(body)")
        == .chunkExtensionsTooLong)
  }

  @Test
  func `the decoder knows when it is between messages`() throws {
    var decoder = RequestDecoder()
    var input = ByteBuffer(string: "\r\n")
    #expect(try decoder.next(&input) == nil)
    #expect(decoder.isBetweenMessages)
    input.writeString("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n")
    #expect(try decoder.next(&input) == nil)
    #expect(!decoder.isBetweenMessages)
    input.writeString("\r\n")
    #expect(try decoder.next(&input) != nil)
    #expect(!decoder.isBetweenMessages)
    input.writeString("x")
    while try decoder.next(&input) != nil {}
    #expect(decoder.isBetweenMessages)
  }
}
