import Wire

/// The hosts of a route: one name, or all names below one (`*.example.com`).
public struct HostPattern: Hashable, Sendable {
  /// The name in lower case; for a wildcard, the part after the asterisk, with its dot.
  private let name: [UInt8]
  private let isWildcard: Bool

  public init(_ text: String) {
    isWildcard = text.hasPrefix("*.")
    name = text.utf8.dropFirst(isWildcard ? 1 : 0).map(ASCII.lowercased)
  }

  /// Whether a host without its port matches, regardless of its letter case. A wildcard stands for one or more labels.
  public func matches(_ host: UnsafeRawBufferPointer) -> Bool {
    guard isWildcard ? host.count > name.count : host.count == name.count else { return false }
    let tail = UnsafeRawBufferPointer(rebasing: host.suffix(name.count))
    return name.withUnsafeBytes { ASCII.equalsIgnoringCase($0, tail) }
  }

  /// Whether this pattern matches every host that another pattern matches.
  func covers(_ other: HostPattern) -> Bool {
    guard other.isWildcard else { return other.name.withUnsafeBytes(matches) }
    return isWildcard && other.name.count >= name.count && other.name.suffix(name.count) == name[...]
  }
}
