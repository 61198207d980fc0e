/// The addresses that begin with the same bits: a block of CIDR notation (RFC 4632).
public struct AddressBlock: Hashable, Sendable {
  /// Its first address.
  public let first: IPAddress
  /// How many bits of the 128 are the same; of a block of IPv4, 96 more than are written.
  public let prefix: Int

  /// `nil` where the address has bits behind the prefix.
  ///
  /// - Parameter prefix: from 0 to 128.
  public init?(_ address: IPAddress, prefix: Int) {
    guard Self.masked(address, prefix) == address else { return nil }
    first = address
    self.prefix = prefix
  }

  public func contains(_ address: IPAddress) -> Bool { Self.masked(address, prefix) == first }

  /// The first address of the block of this size that an address lies in.
  public static func masked(_ address: IPAddress, _ prefix: Int) -> IPAddress {
    IPAddress(
      high: address.high & mask(of: min(prefix, 64)), low: address.low & mask(of: max(prefix - 64, 0)))
  }

  private static func mask(of bits: Int) -> UInt64 { bits == 0 ? 0 : ~0 << UInt64(64 - bits) }
}
