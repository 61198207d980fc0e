import NIOCore
import Testing
import Wire
import WireOracle

/// Small chunks are joined, which changes neither the body nor what is refused.
struct SmallChunksTests {
  private static let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

  /// A chunk of this many bytes, with its size as written.
  private static func chunk(_ size: Int, as written: String? = nil) -> String {
    "\(written ?? String(size, radix: 16))\r\n\(String(repeating: "x", count: size))\r\n"
  }

  /// The sizes of the pieces in which a body comes that arrives at once.
  private static func pieces(_ chunks: String) throws -> [Int] {
    var decoder = RequestDecoder()
    var input = ByteBuffer(string: "\(head)\(chunks)0\r\n\r\n")
    var pieces: [Int] = []
    while let event = try decoder.next(&input) {
      if case .body(let piece) = event { pieces.append(piece.readableBytes) }
    }
    #expect(input.readableBytes == 0)
    return pieces
  }

  @Test func `chunks of one byte come as few pieces`() throws {
    let count = 10_000
    let pieces = try Self.pieces(String(repeating: "1\r\nx\r\n", count: count))
    #expect(pieces.reduce(0, +) == count)
    #expect(pieces.count == 4)
  }

  @Test func `large chunks stay pieces of their own, and a single one is not copied`() throws {
    #expect(try Self.pieces(Self.chunk(1)) == [1])
    #expect(try Self.pieces(Self.chunk(1023) + Self.chunk(1023)) == [2046])
    #expect(try Self.pieces(Self.chunk(1) + Self.chunk(1024) + Self.chunk(1)) == [1, 1024, 1])
    #expect(try Self.pieces(Self.chunk(1) + Self.chunk(1, as: "1;a=b") + Self.chunk(1)) == [1, 1, 1])
    #expect(try Self.pieces(Self.chunk(1, as: "001") + Self.chunk(1, as: "01")) == [2])
  }

  /// Bytes that follow small chunks, well-formed and malformed.
  static let continuations = [
    "0\r\n\r\n", "0\r\nX-Sum: 1\r\n\r\n", chunk(1023), chunk(1024), chunk(70_000), chunk(1, as: "0001"),
    chunk(1, as: "0000000000000001"), chunk(1, as: "00000000000000001"), chunk(10, as: "A"),
    chunk(1, as: "1;a"), chunk(1, as: "1;a=\"b;c\""), chunk(1, as: "1 "), chunk(1, as: "+1"), "\r\n", "x",
    "1\nx\r\n", "1\r\nxy\r\n", "1\r\nx\n", "1\r\nx\rx", "1\rx\r\n", "g\r\n", "fffffffffffffffff\r\n",
    chunk(2, as: "1"), chunk(1, as: "2"), "", "1", "1\r", "1\r\n", "1\r\nx", "1\r\nx\r",
  ]

  @Test(arguments: continuations.indices, [1, 2, 3, 3000])
  func `a body that arrives at once is read like one that arrives byte by byte`(_ index: Int, _ count: Int) {
    let chunks = String(repeating: Self.chunk(1), count: count) + Self.continuations[index]
    for end in ["", Self.chunk(3) + "0\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n"] {
      let bytes = "\(Self.head)\(chunks)\(end)".bytes
      let byByte = Decoded.requests(bytes, cuts: Array(1..<bytes.count))
      #expect(Decoded.requests(bytes) == byByte)
      #expect(byByte.messages.first?.body.count ?? 0 >= count)
    }
  }
}
