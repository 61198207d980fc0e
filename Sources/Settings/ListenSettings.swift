import TLS
import Wire

/// The settings of one listener for clients.
public struct ListenSettings: Hashable, Sendable {
  public var address: ServerAddress
  public var tls: TLSFiles?
  /// Whether a load balancer sends a PROXY protocol header, which names the client, before each connection's first
  /// byte.
  public var proxyProtocol = false
  /// The permissions of a Unix socket. By default its owner and its group may connect.
  public var mode = 0o660

  public init(_ address: ServerAddress) { self.address = address }

  public static func tcp(host: String, port: Int) -> ListenSettings { .init(.tcp(host: host, port: port)) }
  public static func unix(path: String) -> ListenSettings { .init(.unix(path: path)) }
}

extension ListenSettings {
  /// Reads an element of `listen`.
  static func read(_ section: Section) -> ListenSettings? {
    let address = section.member("address")
    if address == nil { section.refuseMissing("address", "is missing: write host:port or unix:/path") }
    let tls = section.member("tls").flatMap(TLSFiles.read)
    var proxyProtocol = false
    section.flag("proxy_protocol", into: &proxyProtocol)
    let mode = section.member("mode")?.parsed("permissions such as \"0660\"", parseMode)
    guard var settings = address?.parsed("host:port or unix:/path", parse) else { return nil }
    if case .tcp = settings.address { section["mode"]?.refuse("is for unix:/path alone; take it out") }
    settings.tls = tls
    settings.proxyProtocol = proxyProtocol
    if let mode { settings.mode = mode }
    return settings
  }

  private static func parse(_ text: String) throws(Refusal) -> ListenSettings {
    if text.hasPrefix("unix:") { return .unix(path: try UnixPath.parse(text)) }
    let address = try HostPort.parse(text, ports: 0...65535)
    return .tcp(host: address.host, port: address.port)
  }

  private static func parseMode(_ text: String) throws(Refusal) -> Int {
    guard (3...4).contains(text.utf8.count), let mode = Int(text, radix: 8), 0...0o777 ~= mode,
      text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "7") ~= $0 })
    else { throw Refusal("must be three octal digits, perhaps after a 0, such as 0660") }
    return mode
  }
}

extension TLSFiles {
  /// Reads the paths and then the files themselves, so that unusable files are reported before a client connects.
  fileprivate static func read(_ value: Value) -> TLSFiles? {
    var files: TLSFiles?
    value.section { section in
      let certificate = section.text("certificate", "the path of a PEM file")
      let key = section.text("key", "the path of a PEM file")
      let clientCA = section.text("client_ca", "the path of a PEM file")
      let clientCAName = section.member("client_ca_name")?.parsed("a name", Identifier.parse)
      if section["client_ca"] == nil {
        section["client_ca_name"]?.refuse("names the client_ca, which is missing beside it")
      }
      for name in ["certificate", "key"] where section[name] == nil {
        section.refuseMissing(name, "is missing: write the path of a PEM file")
      }
      let faults = TLSFault.each(certificate: certificate, key: key, authority: clientCA, as: .clientCA)
      for fault in faults { section[fault.file.rawValue]?.refuse(fault.message) }
      guard let certificate, let key, section.isSound("certificate", "key", "client_ca", "client_ca_name")
      else {
        return
      }
      let read = TLSFiles(certificate: certificate, key: key, clientCA: clientCA, clientCAName: clientCAName)
      do throws(TLSFault) {
        _ = try read.context()
        if let doubt = read.doubt() { section["certificate"]?.warn(doubt) }
        files = read
      } catch {
        section[error.file.rawValue]?.refuse(error.message)
      }
    }
    return files
  }
}

extension ListenSettings {
  /// Whether a connection to this address, made on this machine, meets the listener. A name other than `localhost` is
  /// not looked up.
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

extension ListenSettings {
  var shown: Shown {
    var shownMode: Shown?
    if case .unix = address { shownMode = .text("0" + String(mode, radix: 8)) }
    return [
      "address": .text(address.description),
      "tls": tls.map { files in
        [
          "certificate": .text(files.certificate), "key": .text(files.key),
          "client_ca": files.clientCA.map(Shown.text),
          "client_ca_name": files.clientCAName.map(Shown.text),
        ]
      },
      "proxy_protocol": .flag(proxyProtocol),
      "mode": shownMode,
    ]
  }
}
