import Glibc
import Idempotency
import TestSupport
import Testing

/// JSON fingerprints over random values, the same ones in every run.
struct JSONPropertyTests {
  private func digest(_ body: [UInt8], _ recipe: Recipe = Recipe()) -> Digest256 {
    Request("application/json", body: body).fingerprint(recipe).digest
  }

  /// Pairs for each of ten seeds, as many as take a second: `SEMEL_PAIRS=100000` makes them a million in all.
  private static let pairs = getenv("SEMEL_PAIRS").flatMap { Int(String(cString: $0)) } ?? 500

  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func `every spelling of a value hashes alike`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<Self.pairs {
      let value = JSONValue.random(depth: 4, using: &generator)
      let one = value.text(using: &generator)
      let other = value.text(using: &generator)
      if digest(one) != digest(other) { record("spelt otherwise it is another", one, other) }
    }
  }

  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func `a value changed in one place hashes differently`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<Self.pairs {
      let value = JSONValue.random(depth: 4, using: &generator)
      let changed = value.changed(using: &generator)
      let one = value.text(using: &generator)
      let other = changed.text(using: &generator)
      // The change may be one of a number's spelling, which the second recipe does not distinguish.
      if digest(one, .one) == digest(other, .one) { record("another value is the same", one, other) }
    }
  }

  private func record(_ fault: String, _ texts: [UInt8]...) {
    let texts = texts.map { String(decoding: $0, as: UTF8.self) }
    Issue.record("\(fault): \(texts.joined(separator: " / "))")
  }

  @Test func `values hash alike only where they are equal`() {
    var generator = SeededGenerator(seed: 99)
    var values: [Digest256: JSONValue] = [:]
    for _ in 0..<5000 {
      let value = JSONValue.random(depth: 2, using: &generator)
      let digest = digest(value.text(using: &generator), .one)
      if let known = values[digest] { #expect(known == value) }
      values[digest] = value
    }
    #expect(values.count > 2000)
  }

  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func `damaged texts are refused or still have one meaning`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let alphabet = Array("{}[]\",:\\u0123eE+-.tfn \u{0}".utf8) + [0x80, 0xC3, 0xED, 0xFF]
    var refused = 0
    for _ in 0..<500 {
      var text = JSONValue.random(depth: 3, using: &generator).text(using: &generator)
      let position = Int.random(in: 0..<text.count, using: &generator)
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: text[position] = alphabet.randomElement(using: &generator) ?? 0
      case 1: text.insert(alphabet.randomElement(using: &generator) ?? 0, at: position)
      default: text.removeSubrange(position...)
      }
      // White space around the whole changes no meaning, and changes bytes.
      let isRaw = digest(text) == digest(text, Recipe(body: .raw))
      #expect((digest([0x20] + text + [0x0A]) == digest(text)) == !isRaw)
      if isRaw { refused += 1 }
    }
    #expect(refused > 50)
  }
}
