import NIOCore
import Testing

@testable import Proxy

/// The log entries about keys that nothing protects.
struct UnprotectedKeysTests {
  private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  @Test func `an entry has the shapes since the last one, the most frequent first`() throws {
    let keys = UnprotectedKeys()
    #expect(keys.count(1, shape: "POST /a", at: start)?.text == "POST /a 1")
    for shape in ["GET /b", "POST /a", "GET /b", "GET /c"] {
      #expect(keys.count(1, shape: shape, at: start + .seconds(59)) == nil)
    }
    // Routes have entries of their own.
    #expect(keys.count(0, shape: "GET /d", at: start)?.text == "GET /d 1")
    let entry = try #require(keys.count(1, shape: "GET /c", at: start + .seconds(60)))
    #expect(entry.requests == 5 && entry.text == "GET /b 2, GET /c 2, POST /a 1")
    // A shape that was logged is forgotten.
    #expect(keys.count(1, shape: "GET /e", at: start + .seconds(120))?.text == "GET /e 1")
  }

  @Test func `shapes beyond the bound are counted without a name`() throws {
    let keys = UnprotectedKeys()
    _ = keys.count(0, shape: "GET /", at: start)
    for number in 0..<1000 { _ = keys.count(0, shape: "GET /\(number)", at: start) }
    let entry = try #require(keys.count(0, shape: "GET /0", at: start + .minutes(1)))
    #expect(entry.shapes.count == UnprotectedKeys.maxShapes && entry.requests == 1001)
    #expect(entry.shapes.first?.text == "GET /0" && entry.shapes.first?.requests == 2)
    #expect(entry.others == 984 && entry.text.hasSuffix(", others 984"))
  }
}
