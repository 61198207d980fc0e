import Idempotency
import Wire

/// The settings of the listener for operators.
public struct AdminSettings: Hashable, Sendable {
  public var host: String
  /// The port; 0 selects any free one.
  public var port: Int
  /// The path of the file with the token; `nil` is allowed only on loopback. A relative one may not exist yet: the
  /// start makes it.
  public var tokenFile: String?
  /// The path of the file with the token that permits reading alone; `nil` if there is none.
  public var readTokenFile: String?
  /// Further host names and addresses for `Host`, in lower case, besides those of loopback and the address at which a
  /// request arrives. Requests with another `Host` are refused, since a web page could point its own name at this
  /// address.
  public var hosts: [String] = []
  public var ui = ConsoleSettings()

  public init(host: String, port: Int, tokenFile: String? = nil) {
    self.host = host
    self.port = port
    self.tokenFile = tokenFile
  }
}

extension AdminSettings {
  /// The minimum length of a token that cannot be guessed, in bytes.
  private static let minTokenBytes = 16

  static func read(_ section: Section) -> AdminSettings? {
    let token = section.member("token_file").flatMap(readToken)
    let readOnly = section.member("read_token_file").flatMap(readToken)
    var ui = ConsoleSettings()
    if let member = section.member("ui") { ui.read(member) }
    if section["token_file"] == nil {
      section["read_token_file"]?.refuse(
        "counts beside token_file alone: add one, whose token permits changes")
    }
    let hosts = section.member("hosts")?.list("a list such as [semel.internal]", of: "a host name", hostName)
    guard let address = section.member("address") else {
      section.refuseMissing("address", "is missing: write host:port, such as 127.0.0.1:8081")
      return nil
    }
    let parsed = address.parsed("host:port") { text throws(Refusal) in
      if text.hasPrefix("unix:") {
        throw Refusal("must be host:port, such as 127.0.0.1:8081; a path is no address of the admin listener")
      }
      return try HostPort.parse(text, ports: 0...65535)
    }
    guard let parsed else { return nil }
    if section["token_file"] == nil, !HostPort.isLoopback(parsed.host), address.missingVariable == nil {
      address.refuse("can be reached from other machines: add a token_file, or listen on 127.0.0.1")
    }
    if let token, token.bytes < minTokenBytes, !HostPort.isLoopback(parsed.host) {
      section["token_file"]?.warn(
        "names a token of fewer than \(minTokenBytes) bytes, and the listener can be reached from other machines: "
          + "whoever guesses it reads and changes records; write a random one, such as openssl rand -hex 32 makes"
      )
    }
    var settings = AdminSettings(host: parsed.host, port: parsed.port, tokenFile: token?.path)
    settings.readTokenFile = readOnly?.path
    settings.hosts = hosts ?? []
    settings.ui = ui
    return settings
  }

  /// Reads the path of the token's file, and the length of the token: the spaces around it do not count.
  private static func readToken(_ member: Value) -> (path: String, bytes: Int)? {
    guard member.missingVariable == nil else { return nil }
    return member.parsed("the path of a file that holds a token") { path throws(Refusal) in
      guard !AdminTokenFile.isMade(at: path) else { return (path: path, bytes: AdminTokenFile.madeBytes) }
      let token = try SecretFile.named(path).revealed.utf8
      let rest = token.drop { " \t".utf8.contains($0) }
      guard !rest.isEmpty else { throw Refusal("names \(path), which holds spaces alone in its first line") }
      guard token.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        throw Refusal("names \(path), whose first line has a control character, which no request can send")
      }
      return (path: path, bytes: rest.count - rest.reversed().prefix { " \t".utf8.contains($0) }.count)
    }
  }

  private static func hostName(_ text: String) throws(Refusal) -> String {
    guard HostPort.isName(text) || IPAddress(text) != nil else {
      throw Refusal("must be a host name or an address without a port, such as semel.internal")
    }
    return text.lowercased()
  }
}

extension AdminSettings {
  var shown: Shown {
    [
      "address": .text(ServerAddress.tcp(host: host, port: port).description),
      "token_file": tokenFile.map(Shown.text),
      "read_token_file": readTokenFile.map(Shown.text),
      "hosts": .texts(hosts),
      "ui": ui.shown,
    ]
  }
}
