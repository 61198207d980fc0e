/// A JSON number in one form, which all spellings of the same exact value share: `1`, `1.0` and `1e0` are `1`, and
/// `100` is `1e2`.
///
/// The form is the digits from the first to the last one that is not zero, with the exponent of the last one. No value is
/// rounded, so that digits which a double cannot hold still count. A number with an exponent of more than 18 digits is
/// written as it stands.
enum JSONNumber {
  private static let zero = UInt8(ascii: "0")
  private static let minus = UInt8(ascii: "-")
  /// The first byte of a number that is written as it stands. No other form begins with it.
  private static let asItStands = UInt8(ascii: "#")
  private static let maxExponentDigits = 18

  /// Writes a number of a checked text.
  static func write(_ text: UnsafeRawBufferPointer, to hash: inout FramedHash) {
    let start = text[0] == minus ? 1 : 0
    let wholeEnd = digitsEnd(text, from: start)
    // Most numbers are integers that do not end with a zero, and are in that form already.
    if wholeEnd == text.count, text[wholeEnd - 1] != zero { return hash.bytes(text) }
    var fraction = wholeEnd..<wholeEnd
    if wholeEnd < text.count, text[wholeEnd] == UInt8(ascii: ".") {
      fraction = wholeEnd + 1..<digitsEnd(text, from: wholeEnd + 1)
    }
    guard let first = significant(text, in: start..<wholeEnd) ?? significant(text, in: fraction) else {
      return hash.byte(zero)
    }
    guard let exponent = exponent(text, from: fraction.upperBound) else {
      hash.byte(asItStands)
      return hash.bytes(text)
    }
    let last = lastSignificant(text, in: fraction) ?? lastSignificant(text, in: start..<wholeEnd) ?? first
    if start == 1 { hash.byte(minus) }
    if first < wholeEnd, last >= fraction.lowerBound {
      hash.bytes(UnsafeRawBufferPointer(rebasing: text[first..<wholeEnd]))
      hash.bytes(UnsafeRawBufferPointer(rebasing: text[fraction.lowerBound...last]))
    } else {
      hash.bytes(UnsafeRawBufferPointer(rebasing: text[first...last]))
    }
    let place = last < wholeEnd ? wholeEnd - 1 - last : fraction.lowerBound - 1 - last
    write(exponent: exponent + place, to: &hash)
  }

  private static func digitsEnd(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
    var end = start
    while end < text.count, 0x30...0x39 ~= text[end] { end += 1 }
    return end
  }

  private static func significant(_ text: UnsafeRawBufferPointer, in digits: Range<Int>) -> Int? {
    for index in digits where text[index] != zero { return index }
    return nil
  }

  private static func lastSignificant(_ text: UnsafeRawBufferPointer, in digits: Range<Int>) -> Int? {
    for index in digits.reversed() where text[index] != zero { return index }
    return nil
  }

  /// The exponent that begins here, 0 if there is none; `nil` if it has too many digits.
  private static func exponent(_ text: UnsafeRawBufferPointer, from start: Int) -> Int? {
    guard start < text.count else { return 0 }
    var digits = text[(start + 1)...]
    let isNegative = digits.first == minus
    if isNegative || digits.first == UInt8(ascii: "+") { digits = digits.dropFirst() }
    digits = digits.drop { $0 == zero }
    guard digits.count <= maxExponentDigits else { return nil }
    let value = digits.reduce(0) { $0 * 10 + Int($1 - zero) }
    return isNegative ? -value : value
  }

  private static func write(exponent: Int, to hash: inout FramedHash) {
    guard exponent != 0 else { return }
    hash.byte(UInt8(ascii: "e"))
    if exponent < 0 { hash.byte(minus) }
    var scale: UInt = 1
    while exponent.magnitude / scale > 9 { scale *= 10 }
    while scale > 0 {
      hash.byte(zero + UInt8(exponent.magnitude / scale % 10))
      scale /= 10
    }
  }
}
