import Glibc

/// An IP address as 128 bits. An IPv4 address is stored as its IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2), so
/// that a machine has one address whatever kind of socket it connects by.
public struct IPAddress: Hashable, Sendable {
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  public var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }
  /// Whether it is an address of the machine itself: 127.0.0.0/8 or ::1.
  public var isLoopback: Bool { isIPv4 ? low >> 24 & 0xFF == 127 : high == 0 && low == 1 }
  /// Whether it stands for every address of a machine: 0.0.0.0 or ::.
  public var isAny: Bool { isIPv4 ? low & 0xFFFF_FFFF == 0 : high == 0 && low == 0 }

  /// Parses an address in text form, without port, brackets or zone.
  public init?(_ text: String) {
    // `inet_pton` would take a NUL for the end of the text.
    guard !text.utf8.contains(0) else { return nil }
    if text.utf8.contains(UInt8(ascii: ":")) {
      var address = in6_addr()
      guard text.utf8.count < INET6_ADDRSTRLEN, inet_pton(AF_INET6, text, &address) == 1 else { return nil }
      (high, low) = withUnsafeBytes(of: &address) { bytes in
        (
          UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
          UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
      }
    } else {
      var address = in_addr()
      guard text.utf8.count < INET_ADDRSTRLEN, inet_pton(AF_INET, text, &address) == 1 else { return nil }
      high = 0
      low = 0xFFFF << 32 | UInt64(UInt32(bigEndian: address.s_addr))
    }
  }

  /// The address of 4 or 16 bytes in network order; `nil` for any other number.
  public init?(packed bytes: some Collection<UInt8>) {
    switch bytes.count {
    case 4: self.init(high: 0, low: 0xFFFF << 32 | bytes.reduce(0) { $0 << 8 | UInt64($1) })
    case 16:
      self.init(
        high: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
        low: bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) })
    default: return nil
    }
  }

  /// Parses an IPv6 literal of a host, as in `[::1]`: an address in brackets, without zone (RFC 3986, section 3.2.2).
  public init?(literal: String) {
    guard literal.hasPrefix("["), literal.hasSuffix("]"), literal.utf8.contains(UInt8(ascii: ":")) else {
      return nil
    }
    self.init(String(literal.dropFirst().dropLast()))
  }

  /// The canonical IPv6 literal of the address in a host, for comparing. An IPv4 address is written as a mapped one.
  public var literal: String { isIPv4 ? "[::ffff:\(text)]" : "[\(text)]" }

  /// The canonical text of the address, for comparing and writing: dotted for IPv4, else as in RFC 5952.
  public var text: String {
    if isIPv4 {
      return (0..<4).map { String(low >> UInt64(24 - 8 * $0) & 0xFF) }.joined(separator: ".")
    }
    var address = in6_addr()
    withUnsafeMutableBytes(of: &address) { bytes in
      bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
      bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    return String(unsafeUninitializedCapacity: Int(INET6_ADDRSTRLEN)) { buffer in
      buffer.withMemoryRebound(to: CChar.self) { text in
        guard inet_ntop(AF_INET6, &address, text.baseAddress, socklen_t(text.count)) != nil else { return 0 }
        return text.firstIndex(of: 0) ?? 0
      }
    }
  }
}

/// A block of addresses that begin with the same bits, as in CIDR notation (RFC 4632).
public struct AddressBlock: Hashable, Sendable {
  /// The first address of the block.
  public let first: IPAddress
  /// The number of leading bits, of 128, that all addresses of the block share. For an IPv4 block this is the written
  /// prefix length plus 96.
  public let prefix: Int

  /// Creates the block with a first address and a prefix length; `nil` if the address has bits set after the prefix.
  ///
  /// - Parameter prefix: A number of bits from 0 to 128.
  public init?(_ address: IPAddress, prefix: Int) {
    guard Self.masked(address, prefix) == address else { return nil }
    first = address
    self.prefix = prefix
  }

  public func contains(_ address: IPAddress) -> Bool { Self.masked(address, prefix) == first }

  /// The first address of the block with this prefix length that contains the address.
  public static func masked(_ address: IPAddress, _ prefix: Int) -> IPAddress {
    IPAddress(
      high: address.high & mask(of: min(prefix, 64)), low: address.low & mask(of: max(prefix - 64, 0)))
  }

  private static func mask(of bits: Int) -> UInt64 { bits == 0 ? 0 : ~0 << UInt64(64 - bits) }
}

/// The address of a server: a host and a port, or a Unix socket.
public enum ServerAddress: Hashable, Sendable, CustomStringConvertible {
  /// A name or an IP address, which has no brackets here, and a port. For a listener, port 0 is any free port.
  case tcp(host: String, port: Int)
  case unix(path: String)

  /// The name or IP address; `nil` for a Unix socket.
  public var host: String? {
    if case .tcp(let host, _) = self { host } else { nil }
  }

  /// The address as in the configuration: `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`.
  public var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
