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
}
