import Idempotency
import TestSupport
import Testing

struct Digest256Tests {
  @Test func `the text is base64url without padding`() throws {
    let zeros = try #require(Digest256([UInt8](repeating: 0, count: 32)))
    #expect(zeros.text == String(repeating: "A", count: 43))
    let ones = try #require(Digest256([UInt8](repeating: 0xFF, count: 32)))
    #expect(ones.text == String(repeating: "_", count: 42) + "8")
    let counting = try #require(Digest256(0..<32))
    #expect(counting.text == "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")
  }

  @Test func `the text is read back`() throws {
    var generator = SeededGenerator(seed: 1)
    for _ in 0..<1000 {
      let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let digest = try #require(Digest256(bytes))
      #expect((0..<32).map { digest[$0] } == bytes)
      #expect(Digest256(text: digest.text) == digest)
    }
  }

  @Test func `no other text is read`() throws {
    let text = try #require(Digest256(0..<32)).text
    #expect(Digest256(text: String(text.dropLast())) == nil)
    #expect(Digest256(text: text + "A") == nil)
    #expect(Digest256(text: text.dropLast() + "=") == nil)
    #expect(Digest256(text: text.dropLast() + "+") == nil)
    // The same bits but for the two that the last character has to spare.
    #expect(Digest256(text: text.dropLast() + "9") == nil)
  }

  @Test func `a digest has neither 31 nor 33 bytes`() {
    #expect(Digest256([UInt8](repeating: 0, count: 31)) == nil)
    #expect(Digest256([UInt8](repeating: 0, count: 33)) == nil)
  }
}
