/// The place of an HTTP resource: an absolute URL, taken apart.
public struct Endpoint: Hashable, Sendable {
  public var isSecure: Bool
  /// The name or address, without the brackets of an IPv6 address.
  public var host: String
  public var port: Int
  /// The path and the query, as they stand in the request line.
  public var target: String

  /// Parses `http://host:port/path?query`; `nil` if it is no such URL. A fragment is left out.
  public init?(_ url: String) {
    guard let scheme = url.firstRange(of: "://") else { return nil }
    switch url[..<scheme.lowerBound].lowercased() {
    case "http": isSecure = false
    case "https": isSecure = true
    default: return nil
    }
    let rest = url[scheme.upperBound...].prefix { $0 != "#" }
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let path = rest[authority.endIndex...]
    guard let place = Endpoint.hostAndPort(authority),
      !rest.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F })
    else { return nil }
    host = place.host
    port = place.port ?? (isSecure ? 443 : 80)
    target = path.hasPrefix("/") ? String(path) : "/" + path
  }

  /// The reason for which a text is no such URL, without the credentials in it.
  public static func fault(of url: String) -> String {
    let fault = "is not an absolute URL of HTTP"
    guard let at = url.lastIndex(of: "@") else { return "\(url) \(fault)" }
    let scheme = url.firstRange(of: "://")?.upperBound ?? url.startIndex
    // A password may hold whatever else has a meaning in a URL: all before the last sign is taken for it.
    let start = scheme <= at ? scheme : url.startIndex
    let shown = "\(url[..<start])\(Redaction.mark)\(url[at...])"
    guard Endpoint("\(url[..<start])\(url[url.index(after: at)...])") != nil else {
      return "\(shown) \(fault)"
    }
    return "\(shown) has credentials, which belong in --header 'Authorization: Basic …'"
  }

  private static func hostAndPort(_ authority: Substring) -> (host: String, port: Int?)? {
    guard !authority.contains("@") else { return nil }
    var host = authority
    var port: Substring?
    if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") {
      host = authority[authority.index(after: authority.startIndex)..<end]
      let rest = authority[authority.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
      port = rest.isEmpty ? nil : rest.dropFirst()
    } else if let colon = authority.firstIndex(of: ":") {
      host = authority[..<colon]
      port = authority[authority.index(after: colon)...]
    }
    guard !host.isEmpty else { return nil }
    guard let port, !port.isEmpty else { return (String(host), nil) }
    guard let number = Int(port), 1...65535 ~= number else { return nil }
    return (String(host), number)
  }

  /// The value of the `Host` field.
  public var authority: String {
    let name = isAddressWithColons ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
  }

  /// The URL as text.
  public var url: String { "\(isSecure ? "https" : "http")://\(authority)\(target)" }

  public var path: String { String(target.prefix { $0 != "?" }) }

  /// The parameters of the query, as they stand there.
  public var query: [(name: String, value: String)] {
    target.drop { $0 != "?" }.dropFirst().split(separator: "&").map { parameter in
      let name = parameter.prefix { $0 != "=" }
      return (String(name), String(parameter.dropFirst(name.count + 1)))
    }
  }

  /// Whether the target is this machine itself, where a check creates nothing that somebody else pays for.
  public var isLoopback: Bool {
    let name = host.lowercased()
    return name == "localhost" || name.hasSuffix(".localhost") || name == "::1"
      || name.hasPrefix("127.") && isAddress
  }

  /// Whether the host is an IP address, which TLS does not announce.
  public var isAddress: Bool {
    isAddressWithColons
      || host.split(separator: ".").count == 4 && host.allSatisfy { $0.isNumber || $0 == "." }
  }

  private var isAddressWithColons: Bool { host.contains(":") }

  /// The resource to which a reference leads, absolute or beginning with a slash; `nil` for any other one.
  public func resolving(_ reference: String) -> Endpoint? {
    if let absolute = Endpoint(reference) { return absolute }
    guard reference.hasPrefix("/"), !reference.hasPrefix("//") else { return nil }
    var other = self
    other.target = String(reference.prefix { $0 != "#" })
    return other
  }

  /// Whether both are served by the same host and port.
  public func hasSameOrigin(as other: Endpoint) -> Bool {
    (isSecure, host.lowercased(), port) == (other.isSecure, other.host.lowercased(), other.port)
  }
}
