/// The proxies whose `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` are believed.
public struct TrustedProxies: Hashable, Sendable {
  public var blocks: [AddressBlock] = []
  /// Whether peers on Unix sockets, which have no address, are trusted.
  public var includesUnixSockets = false

  public init(blocks: [AddressBlock] = [], includesUnixSockets: Bool = false) {
    self.blocks = blocks
    self.includesUnixSockets = includesUnixSockets
  }

  public var isEmpty: Bool { blocks.isEmpty && !includesUnixSockets }

  /// Whether the peer is a trusted proxy.
  ///
  /// - Parameter peer: The peer's address; `nil` for a Unix socket.
  public func trusts(_ peer: IPAddress?) -> Bool {
    guard let peer else { return includesUnixSockets }
    return blocks.contains { $0.contains(peer) }
  }

  /// The address of the client behind a trusted peer: the right-most address in `X-Forwarded-For` that is not a trusted
  /// proxy's own, or the left-most if all are.
  ///
  /// Each proxy vouches for the address that it appended, so the search goes from right to left and ends at the first
  /// address that is not trusted. An entry that is not an address (`unknown`, a name, a typing error) ends the search
  /// without a result, because it means that a trusted proxy does not know the client. A missing field means the same.
  ///
  /// - Returns: The address; `nil` if the client is unknown.
  public func client(in head: MessageHead) -> IPAddress? {
    var client: IPAddress?
    for field in head.fields.reversed() where field.name == .xForwardedFor {
      let entries = head.withBytes(field.valueRange) { value in
        ListElements(value).map { String(decoding: $0, as: UTF8.self) }
      }
      for entry in entries.reversed() {
        guard let address = Self.address(entry) else { return nil }
        client = address
        guard trusts(address) else { return client }
      }
    }
    return client
  }

  /// The address in an entry: `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`, each with or without a port, which some
  /// proxies add.
  static func address(_ entry: String) -> IPAddress? {
    if entry.hasPrefix("[") {
      guard let end = entry.firstIndex(of: "]") else { return nil }
      let rest = entry[end...].dropFirst()
      guard rest.isEmpty || isPort(rest) else { return nil }
      let text = String(entry[..<end].dropFirst())
      return text.contains(":") ? IPAddress(text) : nil
    }
    if let address = IPAddress(entry) { return address }
    guard let colon = entry.firstIndex(of: ":"), isPort(entry[colon...]) else { return nil }
    return IPAddress(String(entry[..<colon]))
  }

  private static func isPort(_ text: Substring) -> Bool {
    text.first == ":" && 2...6 ~= text.utf8.count && text.utf8.dropFirst().allSatisfy(ASCII.isDigit)
  }
}
