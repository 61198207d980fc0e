import Idempotency
import TLS
import Wire

// The members of the file, of which the topology is made.
extension RedisSettings {
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

  /// The Sentinels, or some nodes of a cluster.
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

  /// What a URL states: the server, the database and the login, and whether there is TLS.
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

  /// Reads `nodes`.
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
  /// The login at Sentinels.
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
