import TLS
import Wire

/// The settings of one listener for clients.
public struct ListenSettings: Hashable, Sendable {
  public var address: ServerAddress
  public var tls: TLSFiles?
  /// Whether each connection begins with a PROXY protocol header, which names the client.
  public var proxyProtocol = false
  /// The permissions of a Unix socket. By default its owner and its group may connect.
  public var mode = 0o660

  public init(_ address: ServerAddress) { self.address = address }

  public static func tcp(host: String, port: Int) -> ListenSettings { .init(.tcp(host: host, port: port)) }
  public static func unix(path: String) -> ListenSettings { .init(.unix(path: path)) }
}

extension ListenSettings {
  static let schema = Schema(ListenSettings(.unix(path: "")), check: { $0.check($1) }) {
    Member("address", \.address, .listener, "the address; port 0 selects any free one")
      .required("is missing: write host:port or unix:/path").standard("`127.0.0.1:8080`")
    Member.optional("tls", \.tls, TLSFiles.schema)
    Member(
      "proxy_protocol", \.proxyProtocol, .flag,
      "`true`: each connection begins with a PROXY header, which names the client"
    )
    Member("mode", \.mode, .permissions, "the permissions of a Unix socket")
      .showing { if case .unix = $0.address { Notation.permissions.show($0.mode) } else { nil } }.standard(
        "`0660`")
  }.restart

  private func check(_ section: Section) {
    if case .tcp = address { section["mode"]?.refuse("is for unix:/path alone; take it out") }
  }
}

extension Notation<ServerAddress> {
  fileprivate static let listener = Notation.text("host:port or unix:/path", show: { .text($0.description) })
  {
    text throws(Refusal) in
    if text.hasPrefix("unix:") { return .unix(path: try UnixPath.parse(text)) }
    let address = try HostPort.parse(text, ports: 0...65535)
    return .tcp(host: address.host, port: address.port)
  }
}

extension Notation<Int> {
  fileprivate static let permissions = Notation.text(
    "permissions such as \"0660\"", show: { .text("0" + String($0, radix: 8)) }
  ) { text throws(Refusal) in
    guard (3...4).contains(text.utf8.count), let mode = Int(text, radix: 8), 0...0o777 ~= mode,
      text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "7") ~= $0 })
    else { throw Refusal("must be three octal digits, perhaps after a 0, such as 0660") }
    return mode
  }
}

extension TLSFiles {
  fileprivate static let schema = Schema(TLSFiles(certificate: "", key: ""), check: { $0.check($1) }) {
    Member("certificate", \.certificate, .pem, "the certificate, followed by its intermediate ones")
      .required("is missing: write the path of a PEM file")
    Member("key", \.key, .pem, "its private key").required("is missing: write the path of a PEM file")
    Member(
      "client_ca", \.clientCA, .pem, "the authority of client certificates; without it none is asked for"
    )
    Member(
      "client_ca_name", \.clientCAName, .name(),
      "the name of `client_ca` in callers, which tells them from those of another listener's"
    ).identity("where a certificate is a caller's part")
  }.restart

  /// Reads the files themselves, so that unusable ones are reported before a client connects.
  private func check(_ section: Section) {
    if section["client_ca"] == nil {
      section["client_ca_name"]?.refuse("names the client_ca, which is missing beside it")
    }
    let faults = TLSFault.each(
      certificate: certificate.isEmpty ? nil : certificate, key: key.isEmpty ? nil : key, authority: clientCA,
      as: .clientCA)
    for fault in faults { section[fault.file.rawValue]?.refuse(fault.message) }
    guard section["certificate"] != nil, section["key"] != nil, !section.value.hasFault else { return }
    do throws(TLSFault) {
      _ = try context()
      if let doubt = doubt() { section["certificate"]?.warn(doubt) }
    } catch {
      section[error.file.rawValue]?.refuse(error.message)
    }
  }
}

extension Notation<String> {
  static let pem = Notation.text("the path of a PEM file")
}

extension ListenSettings {
  /// Whether a connection of this machine to this address meets the listener. Of names only `localhost` is looked up.
  func takes(_ other: ServerAddress) -> Bool {
    guard case .tcp(let host, let port) = address, case .tcp(let otherHost, port) = other, port != 0 else {
      return address == other
    }
    let own = IPAddress(host)
    let targets = otherHost.lowercased() == "localhost" ? ["127.0.0.1", "::1"] : [otherHost]
    return targets.contains { target in
      guard let target = IPAddress(target) else { return target.lowercased() == host.lowercased() }
      return target == own || host.lowercased() == "localhost" && target.isLoopback
        || own?.isAny == true && (target.isLoopback || target.isAny)
        // Linux connects to this machine for it.
        || target.isAny && own?.isLoopback == true
    }
  }
}

extension ServerAddress {
  /// Whether a listener at this address leaves none to one at another: both are the same, or one is a wildcard of which
  /// the other is a part. That of IPv6 takes IPv4, too. A name is not looked up.
  func excludes(_ other: ServerAddress) -> Bool {
    guard case .tcp(let host, let port) = self, case .tcp(let otherHost, port) = other else {
      return self == other
    }
    // Port 0 is another port each time.
    guard port != 0, host.lowercased() != otherHost.lowercased() else { return port != 0 }
    let (address, otherAddress) = (IPAddress(host), IPAddress(otherHost))
    return address != nil && address == otherAddress || Self.covers(address, otherAddress)
      || Self.covers(otherAddress, address)
  }

  private static func covers(_ wildcard: IPAddress?, _ address: IPAddress?) -> Bool {
    guard let wildcard, wildcard.isAny else { return false }
    return !wildcard.isIPv4 || address?.isIPv4 == true
  }
}
