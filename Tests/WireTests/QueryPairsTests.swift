import NIOCore
import Testing
import Wire
import WireOracle

struct QueryPairsTests {
  private func pairs(_ text: String, form: Bool) -> [String] {
    QueryPairs(ByteBuffer(string: text), form: form).map {
      "\(String(buffer: $0.name))=\(String(buffer: $0.value))"
    }
  }

  @Test(
    arguments: [
      ("", []), ("&&", []), ("a=b", ["a=b"]), ("a", ["a="]), ("=b", ["=b"]), ("a=b=c&d", ["a=b=c", "d="]),
      ("b=2&a=1&b=3", ["b=2", "a=1", "b=3"]), ("%61%3D=%26%c3%A9", ["a==&é"]),
      ("a=%&b=%4&c=%zz", ["a=%", "b=%4", "c=%zz"]),
      ("a;b=c", ["a;b=c"]),
    ] as [(String, [String])])
  func `pairs are decoded in their order`(_ text: String, _ expected: [String]) {
    #expect(pairs(text, form: true) == expected)
    #expect(pairs(text, form: false) == expected)
  }

  @Test
  func `a plus is a space in forms only`() {
    #expect(pairs("a+b=c+%2B", form: true) == ["a b=c +"])
    #expect(pairs("a+b=c+%2B", form: false) == ["a+b=c++"])
  }

  @Test
  func `a slice of a larger buffer is read within its bounds`() throws {
    var buffer = ByteBuffer(string: "skipped&a=b&c")
    buffer.moveReaderIndex(forwardBy: 8)
    let names = QueryPairs(buffer, form: false).map { String(buffer: $0.name) }
    #expect(names == ["a", "c"])
  }
}
