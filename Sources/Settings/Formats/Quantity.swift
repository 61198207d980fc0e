import Idempotency
import Wire

enum Quantity {
  /// Splits a text such as `30s`. A number that is too large becomes the maximum; without one, the unit is `?`.
  static func split(_ text: String) -> (count: Int64, unit: Substring) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard !digits.isEmpty else { return (0, "?") }
    return (Int64(digits) ?? .max, text.dropFirst(digits.count))
  }
}

/// Spans of time in the notation of the configuration: `250ms`, `30s`, `5m`, `24h`, `30d`.
enum TimeSpan {
  /// The units from the largest down, so that `Milliseconds.text` finds the shortest form.
  fileprivate static let units: [(name: String, milliseconds: Int64)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
  ]
  /// The maximum span, a hundred years, which is far from an overflow of a clock or of a store's expiry.
  static let max: Milliseconds = .seconds(36_500 * 86_400)

  static func parse(_ text: String) throws(Refusal) -> Milliseconds {
    let (count, unit) = Quantity.split(text)
    guard !unit.isEmpty else {
      let isPossible = count <= max.count / 1000
      throw Refusal(
        "has no unit: write it in ms, s, m, h or d, "
          + (isPossible ? "such as \(count)s" : "and at most \(max.text)"))
    }
    guard let factor = units.first(where: { $0.name == unit })?.milliseconds else {
      throw Refusal("must be a whole number and a unit, which is ms, s, m, h or d")
    }
    let (product, overflow) = count.multipliedReportingOverflow(by: factor)
    guard !overflow, product <= max.count else { throw Refusal("must be at most \(max.text)") }
    return Milliseconds(product)
  }
}

extension Milliseconds {
  /// The span in the largest unit of which it is a multiple, as a configuration writes it.
  public var text: String {
    guard count > 0 else { return "0s" }
    let unit = TimeSpan.units.first { count % $0.milliseconds == 0 } ?? ("ms", 1)
    return "\(count / unit.milliseconds)\(unit.name)"
  }
}

/// Sizes in the notation of the configuration: `0B`, `64KiB`, `1MiB`, `1GiB`.
enum ByteSize {
  private static let units: [(name: String, bytes: Int64)] = [
    ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
  ]

  static func parse(_ text: String) throws(Refusal) -> Int {
    let (count, unit) = Quantity.split(text)
    guard !unit.isEmpty else {
      // The maximum of any member, in KiB.
      let isPossible = count <= 1 << 30
      throw Refusal(
        "has no unit: write it in B, KiB, MiB or GiB, such as \(isPossible ? "\(count)KiB" : "64KiB")")
    }
    guard let factor = units.first(where: { $0.name == unit })?.bytes else {
      throw Refusal("must be a whole number and a unit, which is B, KiB, MiB or GiB")
    }
    let (product, overflow) = count.multipliedReportingOverflow(by: factor)
    return overflow ? .max : Int(product)
  }

  static func text(_ size: Int) -> String {
    guard size > 0 else { return "0B" }
    let unit = units.first { Int64(size) % $0.bytes == 0 } ?? ("B", 1)
    return "\(Int64(size) / unit.bytes)\(unit.name)"
  }
}

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

/// A host and a port, as in `127.0.0.1:8080`, `[::1]:8080` or `localhost:80`.
struct HostPort: Hashable {
  /// The host. An IPv6 address has no brackets here.
  var host: String
  var port: Int

  /// - Parameter implied: The port if none is given; `nil` makes the port mandatory.
  static func parse(
    _ text: some StringProtocol, port implied: Int? = nil, ports: ClosedRange<Int> = 1...65535
  ) throws(Refusal) -> HostPort {
    let example = "such as 127.0.0.1:8080 or [::1]:8080"
    let host: String
    var rest: Substring
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { throw Refusal("has a [ without its ]") }
      host = String(text[..<end].dropFirst())
      rest = Substring(text[end...].dropFirst())
      guard isIPv6(host) else { throw Refusal("must have an IPv6 address between [ and ], \(example)") }
    } else {
      let end = text.firstIndex(of: ":") ?? text.endIndex
      host = String(text[..<end])
      rest = Substring(text[end...])
      if rest.dropFirst().contains(":") { throw Refusal("must have an IPv6 address in brackets, \(example)") }
      // A number alone is rather a port than a host.
      try require(
        isName(host) || rest.isEmpty && isDigits(host), "must have a host before the port, \(example)")
    }
    guard rest.popFirst() == ":" else {
      guard let implied, rest.isEmpty, isIPv6(host) || isName(host) else {
        throw Refusal("must end with a port, \(example)")
      }
      return HostPort(host: host, port: implied)
    }
    guard isDigits(rest), let port = Int(rest), ports.contains(port) else {
      throw Refusal("must have a port from \(ports.lowerBound) to \(ports.upperBound)")
    }
    return HostPort(host: host, port: port)
  }

  /// Whether only this machine can reach the address.
  static func isLoopback(_ host: String) -> Bool {
    if host == "::1" || host.lowercased() == "localhost" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { isDigits($0) && UInt8($0) != nil }
  }

  /// Whether the text is a DNS name or an IPv4 address. One that ends in a number is an address, which has four parts:
  /// to browsers `5` is 0.0.0.5.
  static func isName(_ host: String) -> Bool {
    guard !host.isEmpty, host.utf8.count <= 253,
      host.utf8.allSatisfy({ ASCII.isLetterOrDigit($0) || ".-_".utf8.contains($0) })
    else { return false }
    let name = host.hasSuffix(".") ? host.dropLast() : host[...]
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard let last = parts.last, isDigits(last) else { return true }
    return parts.count == 4 && parts.allSatisfy { isDigits($0) && UInt8($0) != nil }
  }

  private static func isIPv6(_ host: String) -> Bool {
    host.contains(":") && host.utf8.allSatisfy { "0123456789abcdefABCDEF:.".utf8.contains($0) }
  }

  private static func isDigits(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
  }
}

/// Addresses of Unix sockets, as in `unix:/run/semel.sock`.
enum UnixPath {
  static func parse(_ text: String) throws(Refusal) -> String {
    let path = text.dropFirst("unix:".count)
    // The address structure has room for 108 bytes on Linux and 104 elsewhere, and a NUL ends the path.
    guard path.hasPrefix("/"), path.utf8.count < 104, !path.utf8.contains(0) else {
      throw Refusal("must have an absolute path of at most 103 bytes, such as unix:/run/semel.sock")
    }
    return String(path)
  }
}

/// The address of a backend, and whether it uses TLS.
struct UpstreamURL: Equatable {
  static let allowed = "http://host:port, https://host:port or unix:/path"

  var address: ServerAddress
  var isSecure = false

  static func parse(_ text: String) throws(Refusal) -> UpstreamURL {
    if text.hasPrefix("unix:") { return UpstreamURL(address: .unix(path: try UnixPath.parse(text))) }
    let isSecure = text.hasPrefix("https://")
    guard isSecure || text.hasPrefix("http://") else { throw Refusal("must be \(allowed)") }
    var authority = text.dropFirst((isSecure ? "https://" : "http://").count)
    if authority.hasSuffix("/") { authority.removeLast() }
    if authority.contains("@") { throw Refusal("must not hold a user: write \(allowed)") }
    if authority.contains(where: { "/?#".contains($0) }) {
      throw Refusal("must end after the port, since the request's own path is sent: write \(allowed)")
    }
    let address = try HostPort.parse(authority, port: isSecure ? 443 : 80)
    return UpstreamURL(address: .tcp(host: address.host, port: address.port), isSecure: isSecure)
  }
}

extension UpstreamSettings.Host {
  /// Parses `preserve`, `upstream`, or a value for the `Host` field: a name with or without a port.
  static func parse(_ text: String) throws(Refusal) -> Self {
    switch text {
    case "preserve": return .preserve
    case "upstream": return .upstream
    default:
      try require(
        text.hasPrefix("[") || HostPort.isName(String(text.prefix { $0 != ":" })),
        "must be preserve, upstream, or a name or an address with or without a port, such as orders.example.com or "
          + "[::1]:8080")
      _ = try HostPort.parse(text, port: 80)
      return .name(text)
    }
  }
}
