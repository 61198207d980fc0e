import NIOCore
import Testing
import Wire

struct EncodingTests {
  private func written(_ write: (inout ByteBuffer) -> Void) -> String {
    var output = ByteBuffer()
    write(&output)
    return String(buffer: output)
  }

  @Test(arguments: [
    (200, "HTTP/1.1 200 OK\r\n"), (201, "HTTP/1.1 201 Created\r\n"),
    (422, "HTTP/1.1 422 Unprocessable Content\r\n"),
    (299, "HTTP/1.1 299 \r\n"), (999, "HTTP/1.1 999 \r\n"),
  ])
  func `a status line is written`(_ status: Int, _ line: String) {
    #expect(written { $0.writeStatusLine(status) } == line)
  }

  @Test func `bytes that follow others take the place of those that were read`() {
    var input = ByteBuffer()
    for number in 0..<1000 {
      input.follow(with: ByteBuffer(string: String(repeating: "\(number % 10)", count: 1000)))
      // A byte stays unread.
      input.moveReaderIndex(forwardBy: input.readableBytes - 1)
    }
    #expect(String(buffer: input) == "9" && input.capacity < 10_000, "\(input.capacity)")
    // A slice that somebody holds stays as it is.
    let slice = input
    input.follow(with: ByteBuffer(string: "x"))
    #expect(String(buffer: input) == "9x" && String(buffer: slice) == "9")
    input = ByteBuffer()
    input.follow(with: ByteBuffer(string: "y"))
    #expect(String(buffer: input) == "y")
  }

  @Test
  func `every status line is read back as written`() throws {
    for status in 100...999 {
      var decoder = ResponseDecoder(method: .head)
      var input = ByteBuffer()
      input.writeStatusLine(status)
      input.writeStaticString("\r\n")
      guard case .head(let response)? = try decoder.next(&input) else {
        Issue.record("no head for \(status)")
        continue
      }
      #expect(response.head.status == status)
    }
  }

  @Test(arguments: [
    (1, "1"), (9, "9"), (10, "A"), (16, "10"), (255, "FF"), (4096, "1000"), (Int.max, "7FFFFFFFFFFFFFFF"),
  ])
  func `a chunk's size is written`(_ length: Int, _ digits: String) {
    #expect(written { $0.writeChunkHeader(length) } == "\(digits)\r\n")
  }

  @Test
  func `the last chunk carries the trailers`() {
    #expect(written { $0.writeLastChunk() } == "0\r\n\r\n")
    #expect(written { $0.writeLastChunk(trailers: ByteBuffer(string: "A: b\r\n")) } == "0\r\nA: b\r\n\r\n")
  }

  @Test(arguments: [0, 7, 10, 99, 100, 12_345, Int.max])
  func `a length is written`(_ length: Int) {
    #expect(written { $0.writeContentLength(length) } == "Content-Length: \(length)\r\n")
  }

  @Test(arguments: [
    ("GET", "/"), ("M-SEARCH", "*"), ("POST", "/v1/orders?" + String(repeating: "a=ä&", count: 99)),
  ])
  func `a request line is written`(_ method: String, _ target: String) {
    #expect(
      written { $0.writeRequestLine(method: method, target: target) } == "\(method) \(target) HTTP/1.1\r\n")
  }

  @Test(arguments: ["", "a", "shop.example:8080"])
  func `a field line is written`(_ value: String) {
    #expect(written { $0.writeFieldLine("Host: ", ByteBuffer(string: value)) } == "Host: \(value)\r\n")
  }

  @Test(arguments: [
    (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
    (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
    (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
    (-62_167_219_200, "Sat, 01 Jan 0000 00:00:00 GMT"),
  ])
  func `a date is written and read back`(_ seconds: Int, _ text: String) {
    #expect(written { $0.writeFieldLine("Date: ", date: seconds) } == "Date: \(text)\r\n")
    #expect(Self.parse(text) == seconds)
  }

  @Test
  func `days of eight centuries are read back`() {
    for day in stride(from: -150_000, through: 150_000, by: 11) {
      let seconds = day * 86_400 + 43_210
      var output = ByteBuffer()
      output.writeFieldLine("", date: seconds)
      output.moveWriterIndex(to: HTTPDate.length)
      let parsed = output.withUnsafeReadableBytes { HTTPDate.parse($0) { 0 } }
      if parsed != seconds { Issue.record("\(seconds) is read back as \(String(describing: parsed))") }
    }
  }

  @Test(arguments: [
    "Mon, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
    "Monday, 06-Nov-94 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37", "Sunday, 06-Nov--4 08:49:37 GMT", "Mon Nov  6 08:49:37 1994",
    "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 94", "Sun, 06 Nov 1994 08:49:37 GMT ", "",
  ])
  func `an invalid date is refused`(_ text: String) {
    #expect(Self.parse(text) == nil)
  }

  @Test(arguments: [
    ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777), ("Sun Nov  6 08:49:37 1994", 784_111_777),
    ("Thursday, 01-Jan-76 00:00:00 GMT", 189_302_400), ("Wed Dec 31 23:59:59 1969", -1),
    // The latest year that is at most fifty years after 2024.
    ("Monday, 31-Dec-74 23:59:59 GMT", 3_313_526_399), ("Wednesday, 01-Jan-75 00:00:00 GMT", 157_766_400),
  ])
  func `a date in an obsolete format is read`(_ text: String, _ seconds: Int) {
    #expect(Self.parse(text) == seconds)
  }

  /// The date as read in 2024.
  private static func parse(_ text: String) -> Int? {
    text.bytes.withUnsafeBytes { HTTPDate.parse($0) { 1_718_000_000 } }
  }
}
