import Idempotency
import TLS
import Wire

/// The connection to one Redis server, to a master that Sentinels name, or to a cluster.
public struct RedisSettings: Hashable, Sendable {
  public typealias Endpoint = ServerAddress

  /// The servers and their roles.
  public enum Topology: Hashable, Sendable {
    case standalone(Endpoint)
    /// The Sentinels, and the name under which they know the master.
    case sentinel([Endpoint], master: String)
    /// Some nodes of the cluster, which name all others.
    case cluster([Endpoint])
  }

  /// The credentials and the TLS settings for one kind of server.
  public struct Login: Hashable, Sendable {
    /// The user; `nil` for Redis' default user.
    public var user: String?
    public var password: Secret?
    /// The path of a file with the password, read for each connection. `password` is `nil` then.
    public var passwordFile: String?
    /// The TLS settings; `nil` for connections in clear.
    public var tls: ClientTLSFiles?

    public init() {}
  }

  /// The copies of a change that must exist before it counts.
  public struct Copies: Hashable, Sendable {
    public enum Medium: String, CaseIterable, Sendable { case memory, waitaof }

    /// The minimum of `store.timeout` where anything is waited for.
    static let minTimeout: Milliseconds = 300

    /// The number of replicas that must have the change.
    public var replicas = 0
    /// The medium on which Redis and these replicas must have the change.
    public var medium = Medium.memory
    /// The time for which new claims wait at a promoted server.
    public var failoverGrace = Milliseconds.seconds(2)

    public init() {}

    var areDemanded: Bool { replicas > 0 || medium == .waitaof }
  }

  public var topology: Topology
  public var copies = Copies()
  public var login = Login()
  /// The login at Sentinels, which do not share the servers' users.
  public var sentinelLogin = Login()
  /// The number of the database; 0 unless a single server has another.
  public var database = 0

  public init(_ topology: Topology) { self.topology = topology }

  public init(address: Endpoint) { self.init(.standalone(address)) }
}

extension RedisSettings {
  /// The servers' addresses as they are written, at least one.
  public var endpoints: [Endpoint] {
    switch topology {
    case .standalone(let endpoint): [endpoint]
    case .sentinel(let nodes, _), .cluster(let nodes): nodes
    }
  }

  /// The topology, unless it is a single server, and the addresses as they are written.
  public var place: String {
    let addresses = endpoints.map(\.description).joined(separator: ", ")
    return switch topology {
    case .standalone: addresses
    case .sentinel(_, let master): "sentinel \(master) by \(addresses)"
    case .cluster: "cluster \(addresses)"
    }
  }

  enum Kind: String, CaseIterable { case standalone, sentinel, cluster }

  /// The members by which other programs name a Redis, of which a URL takes the place.
  static let strangers = ["host", "port", "address", "db", "database"]
  static let urlRemedy = "write store.url: redis://HOST:PORT/0"

  static let unset = RedisSettings(address: .unix(path: ""))

  var kind: Kind {
    get {
      switch topology {
      case .standalone: .standalone
      case .sentinel: .sentinel
      case .cluster: .cluster
      }
    }
    set {
      switch newValue {
      case .standalone: topology = Self.unset.topology
      case .sentinel: topology = .sentinel([], master: "")
      case .cluster: topology = .cluster([])
      }
    }
  }

  var nodes: [Endpoint] {
    get { kind == .standalone ? [] : endpoints }
    set {
      switch topology {
      case .standalone: break
      case .sentinel(_, let master): topology = .sentinel(newValue, master: master)
      case .cluster: topology = .cluster(newValue)
      }
    }
  }

  var masterName: String {
    get { if case .sentinel(_, let master) = topology { master } else { "" } }
    set { topology = .sentinel(nodes, master: newValue) }
  }

  /// The parts of a URL: the server, the database and the login, and whether there is TLS.
  var server: RedisSettings {
    get {
      var server = RedisSettings(topology)
      server.database = database
      if login.passwordFile == nil {
        (server.login.user, server.login.password) = (login.user, login.password)
      }
      server.login.tls = login.tls.map { _ in ClientTLSFiles() }
      return server
    }
    set { (topology, database, login) = (newValue.topology, newValue.database, newValue.login) }
  }

  /// The URL without user and password, which are shown as members of their own.
  fileprivate var url: String {
    guard case .tcp = endpoints[0] else { return endpoints[0].description }
    return "\(login.tls == nil ? "redis" : "rediss")://\(endpoints[0].description)/\(database)"
  }

  var nodesRemedy: String {
    "write the addresses of "
      + (kind == .sentinel
        ? "the Sentinels, such as [\"10.0.0.1:26379\"]" : "some nodes, such as [\"10.0.0.1:6379\"]")
  }

  mutating func readNodes(_ member: Value) {
    let port = kind == .sentinel ? 26379 : 6379
    let wanted = "a list of addresses, such as [\"10.0.0.1:\(port)\"]"
    let read = member.list(wanted, of: "host:port") { text throws(Refusal) in
      if let scheme = text.firstRange(of: "://") {
        let prefix = text[..<scheme.upperBound]
        throw Refusal("must be host:port, without \(prefix); tls: {} beside nodes turns TLS on")
      }
      let address = try HostPort.parse(text, port: port)
      return Endpoint.tcp(host: address.host, port: address.port)
    }
    guard let read, !member.hasFault else { return }
    if read.isEmpty { member.refuse("must have an element: \(nodesRemedy)") }
    nodes = read
  }
}

extension Notation<RedisSettings> {
  static let url = Notation.text(
    RedisSettings.allowed, show: { $0.kind == .standalone ? .text($0.url) : nil },
    parse: { text throws(Refusal) in try RedisSettings.parse(text) })
}

extension Notation<String> {
  static let masterName = Notation.text("the name under which the Sentinels know the master")
  static let user = Notation.text("the name of a user of Redis")
  static let passwordFile = Notation.text("the path of a file that holds a password", show: { .text($0) }) {
    path throws(Refusal) in
    _ = try SecretFile.named(path)
    return path
  }
}

extension RedisSettings.Login {
  static let schema = Schema(RedisSettings.Login(), check: { $0.check($1) }) {
    Member("username", \.fileUser, .user, "the user at the Sentinels")
      .showing { $0.user.map(Shown.text) }
    Member("password_file", \.passwordFile, .passwordFile, "a file with the user's password")
    Member.optional("tls", \.tls, ClientTLSFiles.schema)
  }

  /// The user beside a file with the password, since a URL may hold another one.
  var fileUser: String? {
    get { passwordFile == nil ? nil : user }
    set { user = newValue }
  }

  func check(_ section: Section) {
    if section["username"] != nil, section.isSound("username"), section["password_file"] == nil {
      section["username"]?.refuse("needs password_file beside it")
    }
  }
}

extension RedisSettings {
  static let allowed = "redis://host:port/0, rediss://host:port/0 or unix:/path"

  /// Parses `redis://user:password@host:port/0`, percent-encoded, the same with `rediss` for TLS, or `unix:/path`.
  static func parse(_ text: String) throws(Refusal) -> RedisSettings {
    if text.hasPrefix("unix:") { return RedisSettings(address: .unix(path: try UnixPath.parse(text))) }
    let isSecure = text.hasPrefix("rediss://")
    guard isSecure || text.hasPrefix("redis://") else { throw Refusal("must be \(allowed)") }
    var rest = text.dropFirst(isSecure ? "rediss://".count : "redis://".count)
    if rest.contains(where: { "?#".contains($0) }) {
      throw Refusal("must end after the database's number; a ? or # in a password is written %3F or %23")
    }
    var user: Substring?
    var password: Substring?
    if let at = rest.lastIndex(of: "@") {
      let pair = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      try require(
        pair.count == 2,
        "must have a password behind the user: redis://user:password@host, or redis://:password@host")
      (user, password) = (pair[0].isEmpty ? nil : pair[0], pair[1])
      rest = rest[at...].dropFirst()
    }
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    let address = try HostPort.parse(rest[..<slash], port: 6379)
    var settings = RedisSettings(address: .tcp(host: address.host, port: address.port))
    if isSecure { settings.login.tls = ClientTLSFiles() }
    settings.login.user = try user.map(decoded)
    settings.login.password = try password.map { text throws(Refusal) in Secret(try decoded(text)) }
    settings.database = try database(rest[slash...].dropFirst())
    return settings
  }

  private static func database(_ text: Substring) throws(Refusal) -> Int {
    if text.isEmpty { return 0 }
    guard text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), let number = Int32(text)
    else {
      throw Refusal("must have the database's number as its path, such as redis://host:port/0")
    }
    return Int(number)
  }

  private static func decoded(_ text: Substring) throws(Refusal) -> String {
    let message = "must have user and password percent-encoded: % as %25, @ as %40, / as %2F"
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2)
      guard digits.count == 2, digits.allSatisfy({ "0123456789abcdefABCDEF".utf8.contains($0) }),
        let value = UInt8(String(Substring(digits)), radix: 16)
      else { throw Refusal(message) }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    guard let decoded = String(validating: bytes, as: UTF8.self) else { throw Refusal(message) }
    return decoded
  }
}
