import NIOCore
import Testing

@testable import Proxy

struct OutgoingBodyTests {
  @Test func `bytes are taken in pieces, in order`() {
    var outgoing = OutgoingBody()
    for text in ["head", "", "0123456789", "end"] { outgoing.append(ByteBuffer(string: text)) }
    #expect(outgoing.count == 17)
    var pieces: [String] = []
    while let piece = outgoing.next(upTo: 4) { pieces.append(String(buffer: piece)) }
    #expect(pieces == ["head", "0123", "4567", "89", "end"])
    #expect(outgoing.isEmpty && outgoing.count == 0)
  }

  @Test func `the rest of a body may be read from another buffer`() {
    let body = ByteBuffer(string: "0123456789")
    var outgoing = OutgoingBody()
    outgoing.append(ByteBuffer(string: "h"))
    outgoing.append(body)
    #expect(outgoing.next(upTo: 4).map { String(buffer: $0) } == "h")
    #expect(outgoing.next(upTo: 4).map { String(buffer: $0) } == "0123")
    outgoing.replace(body, by: ByteBuffer(string: "0123456789"))
    #expect(outgoing.next(upTo: 100).map { String(buffer: $0) } == "456789")
  }

  @Test func `trailers are never taken for the body`() {
    let body = ByteBuffer(string: "0123456789")
    var outgoing = OutgoingBody()
    outgoing.append(body)
    outgoing.append(ByteBuffer(string: "trailers.."))
    #expect(outgoing.next(upTo: 6).map { String(buffer: $0) } == "012345")
    outgoing.replace(body, by: ByteBuffer(string: "0123456789"))
    #expect(outgoing.next(upTo: 100).map { String(buffer: $0) } == "6789")
    #expect(outgoing.next(upTo: 100).map { String(buffer: $0) } == "trailers..")
  }
}
