import NIOCore

/// The host to which a request is directed.
public struct RequestHost: Sendable, Equatable {
  /// The host in lower case, without port and without the root's dot; an IPv6 address in its canonical form (RFC 5952),
  /// with its brackets.
  public let name: ByteBuffer
  /// The port; `nil` if none is given.
  public let port: UInt16?

  /// Reads the host of a target in absolute or authority form, else that of `Host`; `nil` if neither has one.
  public init?(of head: borrowing MessageHead, target: borrowing RequestTarget) throws(WireError) {
    if let authority = target.authority {
      try self.init(authority)
    } else if let field = head.first(.host) {
      try self.init(head.slice(field.valueRange))
    } else {
      return nil
    }
  }

  /// Reads the host in `host[:port]`; `nil` if that is empty.
  public init?(_ authority: ByteBuffer) throws(WireError) {
    let parsed = try authority.withUnsafeReadableBytes { bytes throws(WireError) -> (Authority, Bool)? in
      guard let parsed = try Authority(bytes) else { return nil }
      return (parsed, bytes[parsed.host].contains { ASCII.lowercased($0) != $0 })
    }
    guard let (parsed, hasCapitals) = parsed,
      let slice = authority.getSlice(at: authority.readerIndex, length: parsed.host.count)
    else { return nil }
    if slice.readableBytesView.first == UInt8(ascii: "[") {
      name = try Self.canonical(slice)
    } else {
      name = hasCapitals ? Self.lowercased(slice) : slice
    }
    port = parsed.port
  }

  /// Whether the host is an address, which names a machine and not a service: an IPv6 address, or four numbers of one
  /// to three digits.
  public var isAddress: Bool {
    name.withUnsafeReadableBytes { $0.first == UInt8(ascii: "[") || Self.isIPv4($0) }
  }

  private static func isIPv4(_ name: UnsafeRawBufferPointer) -> Bool {
    var (parts, digits) = (1, 0)
    for byte in name {
      if byte == UInt8(ascii: ".") {
        guard digits > 0 else { return false }
        (parts, digits) = (parts + 1, 0)
      } else {
        guard 0x30...0x39 ~= byte, digits < 3 else { return false }
        digits += 1
      }
    }
    return parts == 4 && digits > 0
  }

  /// The one spelling of an IPv6 address. Otherwise a route's host would miss requests in the other ones.
  @inline(never)
  private static func canonical(_ literal: ByteBuffer) throws(WireError) -> ByteBuffer {
    guard let address = IPAddress(literal: String(buffer: literal)) else { throw .badHost }
    return ByteBuffer(string: address.literal)
  }

  private static func lowercased(_ bytes: ByteBuffer) -> ByteBuffer {
    var lowered = ByteBufferAllocator().buffer(capacity: bytes.readableBytes)
    for byte in bytes.readableBytesView { lowered.writeInteger(ASCII.lowercased(byte)) }
    return lowered
  }
}

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
