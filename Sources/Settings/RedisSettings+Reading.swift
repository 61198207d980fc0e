import Idempotency
import TLS
import Wire

extension RedisSettings {
  private enum Kind: String, CaseIterable { case standalone, sentinel, cluster }

  /// The members of `store` that belong to Redis alone.
  static let members = [
    "url", "topology", "nodes", "master_name", "username", "password_file", "tls", "sentinel",
    "replicas", "durable", "failover_grace", "plain_claims",
  ]
  /// The members by which other programs name a Redis, of which a URL takes the place.
  static let strangers = ["host", "port", "address", "db", "database"]
  static let urlRemedy = "write store.url: redis://HOST:PORT/0"

  /// Reads the members of `store` for a Redis; `nil` if the servers' addresses are missing or invalid.
  static func read(_ section: Section) -> RedisSettings? {
    var kind = Kind.standalone
    section.choice("topology", into: &kind)
    guard section.isSound("topology") else {
      // Nothing is reported about the members that depend on it.
      for name in members { _ = section.member(name) }
      section.declare(strangers)
      return nil
    }
    var settings: RedisSettings?
    switch kind {
    case .standalone: settings = readStandalone(section)
    case .sentinel: settings = readSentinel(section)
    case .cluster: settings = readCluster(section)
    }
    var login = settings?.login ?? Login()
    login.read(section, isSecureURL: kind == .standalone && settings != nil ? login.tls != nil : nil)
    settings?.login = login
    var copies = Copies()
    // A master has a few replicas. More than all of them would never be reached.
    section.integer("replicas", into: &copies.replicas, in: 0...16)
    section.choice("durable", into: &copies.medium)
    section.duration("failover_grace", into: &copies.failoverGrace, atMost: .seconds(60))
    if copies.replicas == 0, section.isSound("replicas") {
      section["failover_grace"]?.refuse("needs replicas above 0; take it out")
    }
    settings?.copies = copies
    section["plain_claims"]?.refuse("is no setting any more: every claim takes the script; take it out")
    return settings
  }

  private static func readStandalone(_ section: Section) -> RedisSettings? {
    section.refuse(["nodes"], "belongs to topology: sentinel or cluster; write url, or take it out")
    section.refuse(strangers, "is no member; \(urlRemedy)")
    section.refuse(["master_name", "sentinel"], "belongs to topology: sentinel; take it out")
    guard let url = section.member("url") else {
      section.refuseMissing("url", "is missing: write \(allowed)")
      return nil
    }
    return url.parsed(allowed, parse)
  }

  private static func readSentinel(_ section: Section) -> RedisSettings? {
    section.refuse(["url"], "belongs to topology: standalone; write the Sentinels' addresses in nodes")
    section.refuse(strangers, "is no member; write HOST:PORT in nodes")
    let nodes = endpoints(section, of: "the Sentinels", port: 26379)
    let master = section.text("master_name", "the name under which the Sentinels know the master")
    if section["master_name"] == nil {
      section.refuseMissing(
        "master_name", "is missing: write the name under which the Sentinels know the master")
    }
    var login = Login()
    section.section("sentinel") { login.read($0, isSecureURL: nil) }
    guard let nodes, let master else { return nil }
    var settings = RedisSettings(.sentinel(nodes, master: master))
    settings.sentinelLogin = login
    return settings
  }

  private static func readCluster(_ section: Section) -> RedisSettings? {
    section.refuse(
      ["url"],
      "belongs to topology: standalone; write the host and port in nodes (a cluster has database 0 alone)")
    section.refuse(["master_name", "sentinel"], "belongs to topology: sentinel; take it out")
    section.refuse(strangers, "is no member; write HOST:PORT in nodes")
    return endpoints(section, of: "some nodes", port: 6379).map { RedisSettings(.cluster($0)) }
  }

  /// Reads `nodes`; `nil` if there are none, or one of them is invalid.
  private static func endpoints(_ section: Section, of whom: String, port: Int) -> [Endpoint]? {
    let example = "such as [\"10.0.0.1:\(port)\"]"
    let wanted = "a list of addresses, \(example)"
    guard let member = section.member("nodes") else {
      section.refuseMissing("nodes", "is missing: write the addresses of \(whom), \(example)")
      return nil
    }
    let nodes = member.list(wanted, of: "host:port") { text throws(Refusal) in
      if let scheme = text.firstRange(of: "://") {
        let prefix = text[..<scheme.upperBound]
        throw Refusal("must be host:port, without \(prefix); tls: {} beside nodes turns TLS on")
      }
      let address = try HostPort.parse(text, port: port)
      return Endpoint.tcp(host: address.host, port: address.port)
    }
    guard let nodes, !member.hasFault else { return nil }
    if nodes.isEmpty { member.refuse("must have an element: write the addresses of \(whom), \(example)") }
    return nodes.isEmpty ? nil : nodes
  }
}

extension RedisSettings.Login {
  /// Reads `username`, `password_file` and `tls`.
  ///
  /// - Parameter isSecureURL: Whether the server has a `rediss` URL; `nil` if it has no URL.
  fileprivate mutating func read(_ section: Section, isSecureURL: Bool?) {
    readPassword(section)
    if let member = section.member("tls"), let files = ClientTLSFiles.read(member) {
      if isSecureURL == false {
        member.refuse("is for rediss:// alone; write that, or take it out")
      } else {
        tls = files
      }
    }
  }

  private mutating func readPassword(_ section: Section) {
    let name = section.text("username", "the name of a user of Redis")
    let wanted = "the path of a file that holds a password"
    let path = section.member("password_file")?.parsed(wanted) { path throws(Refusal) in
      _ = try SecretFile.named(path)
      return path
    }
    if user != nil || password != nil {
      section.refuse(["username", "password_file"], "repeats what stands in the url; take one of them out")
    } else if name != nil, section["password_file"] == nil {
      section["username"]?.refuse("needs password_file beside it")
    }
    guard let path, user == nil, password == nil else { return }
    (user, passwordFile) = (name, path)
  }
}

extension ClientTLSFiles {
  /// Reads the paths and then the files themselves, so that unusable files are reported before the first connection.
  static func read(_ value: Value) -> ClientTLSFiles? {
    var files: ClientTLSFiles?
    value.section { section in
      let file = "the path of a PEM file"
      var read = ClientTLSFiles(
        ca: section.text("ca", file), certificate: section.text("certificate", file),
        key: section.text("key", file))
      read.serverName = section.member("server_name")?.parsed("a host name") { text throws(Refusal) in
        try HostPort.parse(text, port: 443).host
      }
      for fault in TLSFault.each(certificate: read.certificate, key: read.key, authority: read.ca, as: .ca) {
        section[fault.file.rawValue]?.refuse(fault.message)
      }
      guard (section["certificate"] == nil) == (section["key"] == nil) else {
        return value.refuse("must have both certificate and key, or neither")
      }
      guard !value.hasFault else { return }
      do throws(TLSFault) {
        _ = try read.context()
        files = read
      } catch {
        (section[error.file.rawValue] ?? value).refuse(error.message)
      }
    }
    return files
  }
}
