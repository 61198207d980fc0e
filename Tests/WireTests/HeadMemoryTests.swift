import NIOCore
import Testing

@testable import Wire

struct HeadMemoryTests {
  @Test func `a head counts with all of the read that it was cut from`() throws {
    let line = "POST /orders HTTP/1.1\r\nhost: a\r\n\r\n"
    var read = ByteBuffer(string: line + String(repeating: "x", count: 60_000))
    let cut = read.readSlice(length: line.utf8.count)
    let bytes = try #require(cut)
    let head = MessageHead(bytes: bytes, start: .status(0, reason: 0..<0), minorVersion: 1, fields: [])
    #expect(head.heldBytes >= 60_000)
    let field = MessageHead.Field(
      nameStart: 0, valueStart: 0, valueLength: 0, nameLength: 0, name: .other)
    let fields = Array(repeating: field, count: 1000)
    let indexed = MessageHead(
      bytes: ByteBuffer(string: "short"), start: .status(0, reason: 0..<0), minorVersion: 1, fields: fields)
    #expect(indexed.heldBytes >= 1000 * MemoryLayout<MessageHead.Field>.size)
  }
}
