import Idempotency
import Wire

/// The settings of the listener for operators.
public struct AdminSettings: Hashable, Sendable {
  public var host: String
  /// The port; 0 selects any free one.
  public var port: Int
  /// The path of the file with the token; `nil` is allowed only on loopback. The start makes a relative one.
  public var tokenFile: String?
  /// The path of the file with the token that permits reading alone; `nil` if there is none.
  public var readTokenFile: String?
  /// Further host names and addresses for `Host`, in lower case. Requests with others are refused, since a web page
  /// could point its own name at this address.
  public var hosts: [String] = []
  public var ui = ConsoleSettings()

  public init(host: String, port: Int, tokenFile: String? = nil) {
    self.host = host
    self.port = port
    self.tokenFile = tokenFile
  }
}

extension AdminSettings {
  static let schema = Schema(AdminSettings(host: "", port: 0), check: { $0.check($1) }) {
    Member("address", \.address, .adminAddress, "`host:port`; beyond loopback a token is required")
      .required("is missing: write host:port, such as 127.0.0.1:8081")
    Member(
      "token_file", \.tokenFile, values: "the path of a file",
      "a file whose first line is the token; the first start makes one that a relative path names and that is not there",
      show: { $0.map(Shown.text) }, read: { $0.readToken($1) }
    )
    Member(
      "read_token_file", \.readTokenFile, values: "the path of a file",
      "beside `token_file`: the same for a second token, which permits reading alone, `GET` and searches",
      show: { $0.map(Shown.text) }, read: { $0.readReadingToken($1) }
    )
    Member("hosts", \.hosts, .hostNames, "further names and addresses by which it is reached")
    Member(
      "ui", \.ui, values: "off, or a section", "the console, the pages under `/ui/`",
      show: { $0.shown }, read: { $0.ui.read($1) }
    )
    .standard("on").parts(ConsoleSettings.schema.rows)
  }.restart

  private static let minTokenBytes = 16

  fileprivate var address: HostPort {
    get { HostPort(host: host, port: port) }
    set { (host, port) = (newValue.host, newValue.port) }
  }

  private func check(_ section: Section) {
    if section["token_file"] == nil {
      section["read_token_file"]?.refuse(
        "counts beside token_file alone: add one, whose token permits changes")
    }
    guard let address = section["address"], !address.hasFault, address.missingVariable == nil else { return }
    if section["token_file"] == nil, !HostPort.isLoopback(host) {
      address.refuse("can be reached from other machines: add a token_file, or listen on 127.0.0.1")
    }
  }

  private mutating func readToken(_ member: Value) {
    guard let token = Self.token(member) else { return }
    tokenFile = token.path
    guard token.bytes < Self.minTokenBytes, !host.isEmpty, !HostPort.isLoopback(host) else { return }
    member.warn(
      "names a token of fewer than \(Self.minTokenBytes) bytes, and the listener can be reached from other machines: "
        + "whoever guesses it reads and changes records; write a random one, such as openssl rand -hex 32 makes"
    )
  }

  private mutating func readReadingToken(_ member: Value) {
    if let token = Self.token(member) { readTokenFile = token.path }
  }

  /// Reads the path of the token's file, and the length of the token: the spaces around it do not count.
  private static func token(_ member: Value) -> (path: String, bytes: Int)? {
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

}

extension Notation<HostPort> {
  fileprivate static let adminAddress = Notation.text(
    "host:port", show: { .text(ServerAddress.tcp(host: $0.host, port: $0.port).description) }
  ) { text throws(Refusal) in
    if text.hasPrefix("unix:") {
      throw Refusal("must be host:port, such as 127.0.0.1:8081; a path is no address of the admin listener")
    }
    return try HostPort.parse(text, ports: 0...65535)
  }
}

extension Notation<[String]> {
  fileprivate static let hostNames = Notation.list(
    "a list such as [semel.internal]", of: "a host name", show: { .text($0) }
  ) { text throws(Refusal) in
    guard HostPort.isName(text) || IPAddress(text) != nil else {
      throw Refusal("must be a host name or an address without a port, such as semel.internal")
    }
    return text.lowercased()
  }
}

/// The settings of the console, the pages on the listener for operators.
public struct ConsoleSettings: Hashable, Sendable {
  public var isOn = true
  /// Whether it may change records where the listener has no token. With one, the token decides.
  public var operate = false
  /// Whether it shows the bodies of recorded responses, each of which is an audit entry.
  public var bodies = false
  /// The path under which a proxy in front serves it, without a slash at its end; empty for none.
  public var basePath = ""

  public init() {}
}

extension ConsoleSettings {
  static let schema = Schema(ConsoleSettings()) {
    Member(
      "operate", \.operate, .flag,
      "without a token, the console may change records; with one, the token decides")
    Member(
      "bodies", \.bodies, .flag,
      "the console shows the bodies of recorded responses, each of which is an audit entry, `view_body`")
    Member(
      "base_path", \.basePath, .consolePath,
      "the path before `/ui/` under which a proxy in front serves the console"
    )
    .standard("none")
  }

  mutating func read(_ member: Value) {
    guard member.isMapping else {
      isOn = member.choice("off, or members such as {operate: true}") { $0 == "off" ? false : nil } ?? true
      return
    }
    member.section { Self.schema.read($0, into: &self) }
  }

  var shown: Shown { isOn ? Self.schema.shown(self) : .text("off") }
}

extension Notation<String> {
  fileprivate static let consolePath = Notation.text(
    "a path such as /semel", show: { $0.isEmpty ? nil : .text($0) }
  ) { text throws(Refusal) in
    let segments = text.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    let isPlain = segments.allSatisfy { segment in
      !segment.isEmpty && segment != "." && segment != ".."
        && segment.utf8.allSatisfy {
          UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0
            || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || "-._~".utf8.contains($0)
        }
    }
    try require(
      text.hasPrefix("/") && isPlain,
      "must be a path of letters and digits that begins with a slash, and does not end with one: /semel")
    return text
  }
}
