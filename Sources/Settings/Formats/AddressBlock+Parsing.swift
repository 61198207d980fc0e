import Wire

extension AddressBlock {
  /// Parses `10.0.0.0/8`, `2001:db8::/32`, or a single address, which is a block of one.
  static func parse(_ text: String) throws(Refusal) -> AddressBlock {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let address = IPAddress(String(first)) else {
      throw Refusal(
        "must be an address or a block of addresses, such as 10.0.0.0/8 or 2001:db8::/32, or unix")
    }
    let maxBits = address.isIPv4 && !first.contains(":") ? 32 : 128
    guard parts.count == 2 else { return try block(address, maxBits, of: maxBits) }
    guard !parts[1].isEmpty, parts[1].utf8.count <= 3, parts[1].utf8.allSatisfy(ASCII.isDigit),
      let bits = Int(parts[1]), bits <= maxBits
    else { throw Refusal("must have a prefix from 0 to \(maxBits) behind the /") }
    return try block(address, bits, of: maxBits)
  }

  private static func block(_ address: IPAddress, _ bits: Int, of maxBits: Int) throws(Refusal)
    -> AddressBlock
  {
    let prefix = bits + 128 - maxBits
    guard let block = AddressBlock(address, prefix: prefix) else {
      throw Refusal("has bits behind its prefix: write \(AddressBlock.masked(address, prefix).text)/\(bits)")
    }
    return block
  }
}
