/// A strictly parsed `host[:port]`, as in `Host` and in a target (RFC 9110, section 7.2).
///
/// A name consists of letters, digits and `-._~`. The rest of RFC 3986's `reg-name`, above all percent-encoding, is
/// refused, because two spellings of one host would be two identities. `user@` is refused too.
struct Authority {
  /// The range of the host: an IPv6 address with its brackets, or a name without the root's dot at its end.
  let host: Range<Int>
  /// The port; `nil` if there is none, or nothing after the colon.
  let port: UInt16?

  /// Parses an authority; `nil` for an empty one, which is the value of `Host` for a target without an authority.
  init?(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
    guard let first = bytes.first else { return nil }
    guard bytes.count <= HeadLimits.hostBytes else { throw .badHost }
    let end = first == 0x5B ? try Self.addressEnd(bytes) : try Self.nameEnd(bytes)
    let hostEnd = end > 0 && bytes[end - 1] == 0x2E ? end - 1 : end
    // With two dots at the end, one would remain, and a second reading would remove it and see another name.
    guard hostEnd > 0, bytes[hostEnd - 1] != 0x2E else { throw .badHost }
    host = 0..<hostEnd
    port = try Self.port(bytes, from: end)
  }

  /// The offset of the end of a name: the colon or the end of the bytes.
  private static func nameEnd(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> Int {
    var at = 0
    while at < bytes.count, ASCII.isUnreserved(bytes[at]) { at += 1 }
    guard at == bytes.count || bytes[at] == ASCII.colon else { throw .badHost }
    return at
  }

  /// The offset of the end of `[`, hexadecimal digits, colons and dots, `]`. Zones and future versions are refused.
  private static func addressEnd(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> Int {
    var at = 1
    var colons = 0
    while at < bytes.count, bytes[at] != 0x5D {
      let byte = bytes[at]
      guard byte == ASCII.colon || byte == 0x2E || ASCII.hexValue(byte) != nil else { throw .badHost }
      if byte == ASCII.colon { colons += 1 }
      at += 1
    }
    // The longest spelling of an IPv6 address has 45 bytes; the shortest is "::".
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
}
