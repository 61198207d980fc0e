import Wire

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
