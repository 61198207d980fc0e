import Testing

@testable import Idempotency

struct FormPairsTests {
  private func pairs(_ text: String, _ reading: PercentText.Reading) -> [String] {
    Array(text.utf8).withUnsafeBytes { bytes in
      func decoded(_ range: Range<Int>) -> String {
        let text = PercentText(UnsafeRawBufferPointer(rebasing: bytes[range]), as: reading)
        return String(decoding: Array(IteratorSequence(text)), as: UTF8.self)
      }
      return FormPairs(bytes).map { "\(decoded($0.name))=\(decoded($0.value))" }
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
    #expect(pairs(text, .form) == expected)
    #expect(pairs(text, .decoded) == expected)
  }

  @Test func `a plus is a space in forms only`() {
    #expect(pairs("a+b=c+%2B", .form) == ["a b=c +"])
    #expect(pairs("a+b=c+%2B", .decoded) == ["a+b=c++"])
  }
}
