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
