/// The bytes of one connection that are not executed yet, as commands.
struct RESPParser {
  /// The bytes violate the protocol, and the connection ends with this error.
  struct Fault: Error { let text: String }

  private var bytes: Bytes = []
  private var start = 0

  mutating func feed(_ more: Bytes) {
    if start == bytes.count {
      bytes = more
      start = 0
    } else {
      bytes += more
    }
  }

  /// Returns the next complete command, which may be empty; `nil` if more bytes are needed.
  mutating func next() throws(Fault) -> [Bytes]? {
    guard start < bytes.count else { return nil }
    guard bytes[start] == UInt8(ascii: "*") else { return inline() }
    var at = start + 1
    guard let count = try length(&at, mark: "multibulk length", max: 1_048_576) else { return nil }
    var words: [Bytes] = []
    words.reserveCapacity(max(count, 0))
    for _ in 0..<max(count, 0) {
      guard at < bytes.count else { return nil }
      guard bytes[at] == UInt8(ascii: "$") else {
        let got = String(UnicodeScalar(bytes[at]))
        throw Fault(text: "ERR Protocol error: expected '$', got '\(got)'")
      }
      at += 1
      guard let length = try length(&at, mark: "bulk length", max: 512 << 20) else { return nil }
      guard length >= 0 else { throw Fault(text: "ERR Protocol error: invalid bulk length") }
      guard at + length + 2 <= bytes.count else { return nil }
      words.append(Bytes(bytes[at..<(at + length)]))
      at += length + 2
    }
    start = at
    compact()
    return words
  }

  private mutating func length(_ at: inout Int, mark: String, max: Int) throws(Fault) -> Int? {
    guard let end = bytes[at...].firstIndex(of: 0x0D), end + 1 < bytes.count else { return nil }
    guard let value = strictInteger(bytes[at..<end]), value <= max else {
      throw Fault(text: "ERR Protocol error: invalid \(mark)")
    }
    at = end + 2
    return Int(value)
  }

  private mutating func inline() -> [Bytes]? {
    guard let end = bytes[start...].firstIndex(of: 0x0A) else { return nil }
    let line = bytes[start..<end].filter { $0 != 0x0D }
    start = end + 1
    compact()
    return line.split(separator: 0x20).map { Bytes($0) }
  }

  private mutating func compact() {
    guard start == bytes.count || start > 1 << 16 else { return }
    bytes.removeFirst(start)
    start = 0
  }
}

/// Reads an integer in its one canonical form, as Redis does; `nil` for any other text.
func strictInteger(_ text: some BidirectionalCollection<UInt8>) -> Int64? {
  guard let first = text.first, text.count < 21 else { return nil }
  if text.count == 1, first == 0x30 { return 0 }
  let isNegative = first == 0x2D
  let digits = isNegative ? text.dropFirst() : text[...]
  guard let leading = digits.first, 0x31...0x39 ~= leading else { return nil }
  var value: Int64 = 0
  for digit in digits {
    guard 0x30...0x39 ~= digit else { return nil }
    let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
    // Negative all the way: the smallest integer has no counterpart.
    let (next, isTooSmall) = product.subtractingReportingOverflow(Int64(digit) - 0x30)
    guard !isTooLarge, !isTooSmall else { return nil }
    value = next
  }
  return isNegative ? value : value == .min ? nil : -value
}
