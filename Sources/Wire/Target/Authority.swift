/// `host[:port]` as `Host` and a target have it (RFC 9110, section 7.2), parsed strictly.
///
/// Letters, digits and `-._~` make a name. The rest of RFC 3986's `reg-name`, percent-encoding above all, is
/// refused: two spellings of one host would be two identities. So is `user@`.
struct Authority {
  /// The host, an IPv6 address with its brackets, a name without the dot of the root at its end.
  let host: Range<Int>
  /// `nil` where none stands there, or nothing after the colon.
  let port: UInt16?
  let isIPLiteral: Bool

  /// `nil` for an empty authority, which is what a target without one puts into `Host`.
  init?(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
    guard let first = bytes.first else { return nil }
    let end = first == 0x5B ? try Self.addressEnd(bytes) : try Self.nameEnd(bytes)
    let hostEnd = end > 0 && bytes[end - 1] == 0x2E ? end - 1 : end
    // A second dot would be left to a name that is another one when it is read again.
    guard hostEnd > 0, bytes[hostEnd - 1] != 0x2E else { throw .badHost }
    host = 0..<hostEnd
    isIPLiteral = first == 0x5B || Self.isIPv4(UnsafeRawBufferPointer(rebasing: bytes[..<hostEnd]))
    port = try Self.port(bytes, from: end)
  }

  /// A name ends at the colon or with the bytes.
  private static func nameEnd(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> Int {
    var at = 0
    while at < bytes.count, ASCII.isUnreserved(bytes[at]) { at += 1 }
    guard at == bytes.count || bytes[at] == ASCII.colon else { throw .badHost }
    return at
  }

  /// `[`, hexadecimal digits, colons and dots, `]`; zones and future versions are refused.
  private static func addressEnd(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> Int {
    var at = 1
    var colons = 0
    while at < bytes.count, bytes[at] != 0x5D {
      let byte = bytes[at]
      guard byte == ASCII.colon || byte == 0x2E || ASCII.hexValue(byte) != nil else { throw .badHost }
      if byte == ASCII.colon { colons += 1 }
      at += 1
    }
    // The longest spelling of an IPv6 address has 45 bytes, the shortest is "::".
    guard at < bytes.count, colons >= 2, colons <= 8, at <= 46 else { throw .badHost }
    return at + 1
  }

  private static func port(_ bytes: UnsafeRawBufferPointer, from end: Int) throws(WireError) -> UInt16? {
    guard end < bytes.count else { return nil }
    guard bytes[end] == ASCII.colon else { throw .badHost }
    let digits = UnsafeRawBufferPointer(rebasing: bytes[(end + 1)...])
    if digits.isEmpty { return nil }
    guard let number = ASCII.decimal(digits), let port = UInt16(exactly: number) else { throw .badHost }
    return port
  }

  /// Four decimal numbers up to 255 with dots between them.
  private static func isIPv4(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var parts = 1
    var value = -1
    for byte in bytes {
      if ASCII.isDigit(byte) {
        value = max(value, 0) * 10 + Int(byte - 0x30)
        guard value <= 255 else { return false }
      } else {
        guard byte == 0x2E, value >= 0, parts < 4 else { return false }
        parts += 1
        value = -1
      }
    }
    return parts == 4 && value >= 0
  }
}
