import Idempotency
import TestSupport
import Testing

/// Forms beside a plain reference, which decodes, compares and writes whole arrays.
struct FormReferenceTests {
  private static let type = "application/x-www-form-urlencoded"

  /// The bytes of which the fingerprint of a form is the SHA-256 digest.
  private func reference(_ body: [UInt8], by version: UInt8) -> [UInt8] {
    let pairs = body.split(separator: UInt8(ascii: "&")).map { pair in
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      return (name: decoded(parts[0]), value: parts.count > 1 ? decoded(parts[1]) : [])
    }
    let folded = { (name: [UInt8]) in
      version == 1 ? name : name.map { 0x41...0x5A ~= $0 ? $0 + 0x20 : $0 }
    }
    var sorted = pairs.enumerated().sorted { left, right in
      folded(left.element.name) == folded(right.element.name)
        ? left.offset < right.offset
        : folded(left.element.name).lexicographicallyPrecedes(folded(right.element.name))
    }
    let isOrdered =
      version == 2
      && (Set(pairs.map { folded($0.name) }).count < pairs.count
        || pairs.contains { $0.name.contains { $0 == 0x5B || $0 == 0x2E || $0 <= 0x20 } })
    if isOrdered { sorted = Array(pairs.enumerated()) }
    var bytes = [UInt8(ascii: "F"), version]
    bytes += framed(Array("POST".utf8)) + framed(Array("/v1/orders".utf8))
    // No query, one media type, no field, the form of a form.
    bytes += version == 1 ? [0] : [0, 0]
    bytes += [1] + framed(Array(Self.type.utf8)) + (version == 1 ? [0, 3] : [0, 0, 0, 3, isOrdered ? 1 : 0])
    bytes += number(pairs.count)
    for (_, pair) in sorted { bytes += framed(pair.name) + framed(pair.value) }
    return bytes
  }

  private func number(_ number: Int) -> [UInt8] {
    number < 128 ? [UInt8(number)] : [UInt8(number % 128 + 128)] + self.number(number / 128)
  }

  private func framed(_ bytes: [UInt8]) -> [UInt8] { number(bytes.count) + bytes }

  private func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var (bytes, rest) = ([UInt8](), text)
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(2), as: UTF8.self)
      if byte == UInt8(ascii: "%"), digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit),
        let value = UInt8(digits, radix: 16)
      {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
      }
    }
    return bytes
  }

  /// Pieces of names, of which one form has only some, and the number of pieces of a name.
  private static let shapes: [(pieces: [String], lengths: ClosedRange<Int>)] = [
    (["a"], 1...1), (["a", "b", "c", "d"], 1...1), (["a", "%61", "+", "%20", "%2B", "%2b"], 1...2),
    (["a", "b"], 5...9), (["x", "y"], 12...17), (["%00", "a"], 0...9), (["abcdefg", "h"], 1...4),
    (["%", "%4", "%zz", "ä", "%c3%a4", "%FF", "\u{0}"], 0...3), (["p"], 0...40),
    (["abcdefghijklmnopqrstuvwxyz", "%41"], 3...5), (["a", "b", "c", "d", "e", "f", "g", "H"], 7...12),
    (["[", "a", "%2e"], 1...9),
  ]

  private func form(_ shape: Int, _ generator: inout SeededGenerator) -> [UInt8] {
    func below(_ bound: Int) -> Int { Int(generator.next() % UInt64(bound)) }
    let (pieces, lengths) = Self.shapes[shape]
    func text(_ lengths: ClosedRange<Int>) -> String {
      (0..<lengths.lowerBound + below(lengths.count)).map { _ in pieces[below(pieces.count)] }.joined()
    }
    // Around the number up to which names are sorted by insertion, and well above it.
    let count = [0, 1, 2, 31, 32, 33, 34, 200, 700][below(9)]
    let pairs = (0..<count).map { number in
      switch below(4) {
      case 0: text(lengths)
      case 1: text(lengths) + "=" + text(0...200)
      case 2: "&" + text(lengths) + "="
      // Shows that equal names stay in their order.
      default: text(lengths) + "=\(number)"
      }
    }
    return Array(pairs.joined(separator: "&").utf8)
  }

  @Test(arguments: shapes.indices) func `a form has the fingerprint of the reference`(shape: Int) {
    var generator = SeededGenerator(seed: UInt64(shape))
    for _ in 0..<40 {
      let body = form(shape, &generator)
      for version in Recipe.Version.allCases {
        let expected = Digest256.sha256(of: reference(body, by: UInt8(version.rawValue)))
        #expect(
          Request(Self.type, body: body).fingerprint(Recipe(version: version)).digest == expected,
          "\(version): \(String(decoding: body, as: UTF8.self))")
      }
    }
  }
}
