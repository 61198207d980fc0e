import Idempotency
import NIOCore
import NIOHPACK
import Testing
import Wire

@testable import Proxy

struct HPACKHeadersTests {
  @Test func `lines become fields with names in lower case`() {
    let fields = HPACKHeaders(lines: ByteBuffer(string: "Content-Type: text/plain\r\nX:\tä: b \r\n"))
    #expect(fields.map { "\($0.name)=\($0.value)" } == ["content-type=text/plain", "x=ä: b"])
  }

  @Test func `bytes that are not UTF-8 are read as ISO 8859-1`() {
    let fields = HPACKHeaders(lines: ByteBuffer(bytes: Array("x: J".utf8) + [0xF6] + Array("rg\r\n".utf8)))
    #expect(fields.first(name: "x") == "Jörg")
  }

  @Test func `a backend's response is forwarded without connection fields`() {
    var head = MessageHead(start: .status(201, reason: 0..<0))
    head.append("Connection", "x-hop", as: .connection)
    head.append("Keep-Alive", "timeout=5", as: .keepAlive)
    head.append("X-Hop", "1")
    head.append("Transfer-Encoding", "chunked", as: .transferEncoding)
    head.append("X-Kept", "1")
    head.append("Date", "Sun, 06 Nov 1994 08:49:37 GMT", as: .date)
    let response = ClientResponse(
      head, label: .executed, body: ByteBuffer(string: "made"), trailers: ByteBuffer(), to: .post)
    #expect(
      HPACKHeaders(response.head).map { "\($0.name)=\($0.value)" } == [
        ":status=201", "x-kept=1", "date=Sun, 06 Nov 1994 08:49:37 GMT", "idempotency-status=executed",
        "content-length=4",
      ])
  }
}

/// The bound on a head's size against the codec itself.
struct HPACKBoundTests {
  @Test func `the bound of each byte is the size that the codec makes of it`() throws {
    for byte in UInt8(0x20)...0x7E {
      // Eight of them take as many bytes as one takes bits. In lower case, since names are.
      let text = String(repeating: Character(UnicodeScalar(byte)), count: 8 * 100)
      var block = ByteBuffer()
      var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
      try encoder.encode(headers: HPACKHeaders([("x", text)]), to: &block)
      let size = HPACKBound.maxBytes(for: text.utf8)
      #expect(size == 100 * HPACKBound.maxBits(for: byte))
      // The form, the name, and the two lengths are what is left.
      #expect(block.readableBytes - size == 6, "\(byte)")
    }
    #expect(HPACKBound.maxBytes(for: "é".utf8) == 15)
  }
}
