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
