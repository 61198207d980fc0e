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
  /// without a result, because it means that a trusted proxy does not know the client. A missing field means the same,
  /// and so do more proxies than there are in any network.
  ///
  /// - Returns: The address; `nil` if the client is unknown.
  public func client(in head: MessageHead) -> IPAddress? {
    var client: IPAddress?
    var left = Self.maxEntries
    for field in head.fields.reversed() where field.name == .xForwardedFor {
      let end = head.withBytes(field.valueRange) { search($0, &client, &left) }
      switch end {
      case .all: continue
      case .found: return client
      case .unknown: return nil
      }
    }
    return client
  }

  /// The maximum number of entries that are read, empty ones included: a client behind a proxy writes as many as it
  /// likes.
  private static let maxEntries = 32
  /// The maximum length of an entry: the longest spelling of an IPv6 address has 45 bytes, its brackets and a port have
  /// 8 more.
  private static let maxEntryBytes = 64

  /// The end of a search in one line.
  private enum SearchEnd {
    /// All of its addresses are those of trusted proxies.
    case all
    case found
    case unknown
  }

  /// Reads the entries of a line from right to left, up to the first that is not a trusted proxy's.
  private func search(
    _ value: UnsafeRawBufferPointer, _ client: inout IPAddress?, _ left: inout Int
  ) -> SearchEnd {
    var end = value.count
    while end > 0 {
      guard left > 0 else { return .unknown }
      left -= 1
      var start = end
      while start > 0, value[start - 1] != ASCII.comma { start -= 1 }
      let entry = MessageHead.trimmed(value[start..<end])
      end = start - 1
      if entry.isEmpty { continue }
      guard entry.count <= Self.maxEntryBytes,
        let address = Self.address(String(decoding: entry, as: UTF8.self))
      else { return .unknown }
      client = address
      guard trusts(address) else { return .found }
    }
    return .all
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
