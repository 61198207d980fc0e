/// Whose word about a client is believed: `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
public struct TrustedProxies: Hashable, Sendable {
  public var blocks: [AddressBlock] = []
  /// Whether those are believed that come by a unix socket, which have no address.
  public var includesUnixSockets = false

  public init(blocks: [AddressBlock] = [], includesUnixSockets: Bool = false) {
    self.blocks = blocks
    self.includesUnixSockets = includesUnixSockets
  }

  public var isEmpty: Bool { blocks.isEmpty && !includesUnixSockets }

  /// - Parameter peer: `nil` for a unix socket.
  public func trusts(_ peer: IPAddress?) -> Bool {
    guard let peer else { return includesUnixSockets }
    return blocks.contains { $0.contains(peer) }
  }

  /// The address of the client behind a trusted peer: the right-most of `X-Forwarded-For` that is not a trusted
  /// proxy's own; where all are, the left-most.
  ///
  /// Each proxy vouches for the address that it appended, so the walk goes from the right and ends where trust ends. An
  /// entry that is no address (`unknown`, a name, a typing error) ends it too: a proxy that is trusted says that it does
  /// not know the client. So does one that says nothing.
  ///
  /// - Returns: `nil` for an unknown client.
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

  /// An entry's address: `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`, with a port behind it where some proxy adds
  /// that.
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
