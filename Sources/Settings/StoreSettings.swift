import Glibc
import Idempotency
import Wire

/// The place and the treatment of records.
public struct StoreSettings: Hashable, Sendable {
  /// The place of the records.
  public enum Place: Hashable, Sendable {
    /// A database file that only this process uses.
    case embedded(path: String)
    case redis(RedisSettings)
  }

  /// The recorded responses that are compressed, as far as it pays.
  public enum Compression: String, CaseIterable, Sendable {
    /// Those that are not sealed.
    case auto
    /// Sealed ones, too, whose length in the store then depends on their content.
    case always
    case off
  }

  public var place: Place = .embedded(path: "semel.db")
  /// The time limit for a command.
  public var timeout: Milliseconds = 500
  /// The maximum size of completed outcomes in this process's cache, in bytes; 0 for no cache.
  public var localCacheBytes = 64 << 20
  /// The name that separates the records of several deployments in one store.
  public var namespace = "semel"
  /// Whether a Redis that may evict or lose records is refused, and an embedded database that was deleted.
  public var requireDurable = false
  /// The path of the file with `idSecret`.
  public var idSecretFile: String?
  /// The key for record ids, which must never change; `nil` if the ids are plain digests.
  public var idSecret: Secret?
  /// The secrets that seal recorded responses; `nil` if these are not sealed.
  public var encryption: EncryptionSettings?
  /// The recorded responses that are compressed.
  public var compression = Compression.auto

  public init() {}
}

extension StoreSettings {
  /// Reads the section `store` alone: what is wrong in the others, such as a missing variable, does not concern it.
  public static func load(
    text: String, file: String, environment: [String: String]
  ) -> Result<StoreSettings, SettingsErrors> {
    var store = StoreSettings()
    let reader = Reader.read(text, file: file, environment: environment) { root in
      let section = root.members("a mapping of members")?.first { $0.name == "store" }?.value
      section?.section { schema.read($0, into: &store) }
    }
    guard reader.errors.isEmpty else { return .failure(SettingsErrors(issues: reader.errors)) }
    return .success(store)
  }

  static let schema = Schema(
    StoreSettings(), removed: removed, deciding: ["kind", "topology"], misplaced: { $0.misplaced($1) },
    check: { $0.check($1) }
  ) {
    Member("kind", \.kind, .word, "a file of this process, or a Redis")
    Member(
      "path", \.path, .text("the path of a database file"), "embedded: the database file, never one in memory"
    )
    .only("embedded")
    Member(
      "topology", \.redis.kind, .word, "redis: with `sentinel` and `cluster`, `nodes` take the place of `url`"
    )
    .showing { $0.redis.kind == .standalone ? nil : .word($0.redis.kind) }.standard("`standalone`")
    .only("redis")
    Member("url", \.redis.server, .url, "redis: `redis://user:password@host:port/0`; `rediss://` for TLS")
      .required("is missing: write \(RedisSettings.allowed)")
      .only("redis")
    Member(
      "nodes", \.redis.nodes, values: "a list of addresses",
      "redis: the Sentinels (port 26379 if none is written), or some nodes of the cluster (6379)",
      show: { $0.isEmpty ? nil : .texts($0.map(\.description)) }, read: { $0.redis.readNodes($1) }
    ).standard("required")
      .only("redis")
    Member("master_name", \.redis.masterName, .masterName, "redis: the master's name at the Sentinels")
      .required("is missing: write the name under which the Sentinels know the master")
      .only("redis")
    login("username", \.redis.login.fileUser, .user, "redis: the user, instead of the one in `url`")
      .showing { $0.redis.login.user.map(Shown.text) }
      .only("redis")
    Member(shown: "password") { $0.redis.login.password.map(Shown.secret) }
      .only("redis")
    login(
      "password_file", \.redis.login.passwordFile, .passwordFile,
      "redis: a file with the user's password, read again for each new connection"
    )
    .only("redis")
    Member.optional("tls", \.redis.login.tls, ClientTLSFiles.schema)
      .only("redis")
    Member.section("sentinel", \.redis.sentinelLogin, RedisSettings.Login.schema)
      .only("redis")
    // A master has a few replicas. More than all of them would never be reached.
    Member(
      "replicas", \.redis.copies.replicas, .integer(0...16),
      "redis: the number of replicas that must have a change before it counts (`WAIT`); all nodes need the same"
    )
    .only("redis")
    Member(
      "durable", \.redis.copies.medium, .word,
      "redis 7.2 or later: with `waitaof` a change counts once it is on disk, at the master and at `replicas`"
    )
    .only("redis")
    Member(
      "failover_grace", \.redis.copies.failoverGrace, .duration(atMost: .seconds(60)),
      "redis, with `replicas`: the time for which new claims wait at a promoted server"
    )
    .only("redis")
    // Twice the time-out must fit into a lease, which is 30 s by default.
    Member(
      "timeout", \.timeout, .duration(atLeast: 1, atMost: .seconds(10)),
      "the time for a command; at least 300 ms with `replicas` or `durable: waitaof`")
    Member(
      "require_durable", \.requireDurable, .flag,
      "`true` refuses a store that may forget or has forgotten; `false` warns of it")
    Member(
      "local_cache", \.localCacheBytes, .size(0...1 << 40),
      "completed outcomes kept in this process; `0B` for none")
    Member("namespace", \.namespace, .name(), "keeps the records of several services in one Redis apart")
    Member(
      "id_secret_file", \.idSecretSource, .idSecret,
      "a file with the key of record ids and of digests in logs and records; it must never change"
    ).identity()
    Member.optional("encryption", \.encryption, EncryptionSettings.schema)
    Member(
      "compression", \.compression, .word, "`auto`: responses that are not sealed; `always`: sealed ones, too"
    )
  }.restart

  /// A member of the login, which the URL may hold.
  private static func login(
    _ name: String, _ path: any WritableKeyPath<StoreSettings, String?> & Sendable,
    _ notation: Notation<String>,
    _ help: String
  ) -> Member<StoreSettings> {
    Member(name, path, values: notation.values, help, show: notation.optional.show) { store, value in
      guard store.redis.login.password == nil else {
        return value.refuseName("repeats what stands in the url; take one of them out")
      }
      if let text = notation.read(value) { store[keyPath: path] = text }
    }
  }

  fileprivate enum Kind: String, CaseIterable { case embedded, redis }

  private var kind: Kind {
    get { if case .embedded = place { .embedded } else { .redis } }
    set { place = newValue == .embedded ? Self().place : .redis(.unset) }
  }

  private var path: String {
    get { if case .embedded(let path) = place { path } else { "" } }
    set { place = .embedded(path: newValue) }
  }

  private var redis: RedisSettings {
    get { if case .redis(let redis) = place { redis } else { .unset } }
    set { place = .redis(newValue) }
  }

  private func misplaced(_ member: Member<StoreSettings>) -> String? {
    guard kind == .redis else {
      return member.kind == Kind.redis.rawValue ? "belongs to kind: redis; write that, or take it out" : nil
    }
    if member.kind == Kind.embedded.rawValue { return "belongs to kind: embedded; take it out" }
    return Self.misplaced(member.name, in: redis.kind)
  }

  private static func misplaced(_ name: String, in topology: RedisSettings.Kind) -> String? {
    switch (name, topology) {
    case ("nodes", .standalone): "belongs to topology: sentinel or cluster; write url, or take it out"
    case ("url", .sentinel): "belongs to topology: standalone; write the Sentinels' addresses in nodes"
    case ("url", .cluster):
      "belongs to topology: standalone; write the host and port in nodes (a cluster has database 0 alone)"
    case ("master_name", .standalone), ("master_name", .cluster), ("sentinel", .standalone),
      ("sentinel", .cluster):
      "belongs to topology: sentinel; take it out"
    default: nil
    }
  }

  private static let removed = [
    "plain_claims": "is no setting any more: every claim takes the script; take it out",
    "trust_clock":
      "is no setting any more: the store starts with any clock, and forgets nothing by it; take it out",
  ]

  private func check(_ section: Section) {
    if case .embedded(let path) = place { checkPath(path, section) } else { checkRedis(section) }
    refuseStrangers(section)
    if let idSecret, idSecret.revealed.utf8.count < 16 {
      section["id_secret_file"]?.warn(
        "the secret is short enough to be guessed; `openssl rand -base64 32` makes one")
    }
  }

  private func checkPath(_ path: String, _ section: Section) {
    // SQLite takes these for something other than the name of a file.
    if path == ":memory:" || path.hasPrefix("file:") {
      section["path"]?.refuse(
        "must be the path of a file, such as /var/lib/semel/semel.db: in memory, every record would be gone at the next "
          + "start")
    } else if Self.isDirectory(path) {
      let file = path + (path.hasSuffix("/") ? "" : "/") + "semel.db"
      section["path"]?.refuse("names a directory; name a file in it, such as \(file)")
    }
  }

  private static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private func checkRedis(_ section: Section) {
    guard section.isSound("kind", "topology") else { return }
    if redis.kind != .standalone, section["nodes"] == nil {
      section.refuseMissing("nodes", "is missing: \(redis.nodesRemedy)")
    }
    redis.login.check(section)
    if let tls = section["tls"], !tls.hasFault, let url = section["url"], !url.hasFault,
      url.text(RedisSettings.allowed)?.hasPrefix("rediss://") == false
    {
      tls.refuse("is for rediss:// alone; write that, or take it out")
    }
    if redis.copies.replicas == 0, section.isSound("replicas") {
      section["failover_grace"]?.refuse("needs replicas above 0; take it out")
    }
    guard redis.copies.areDemanded, timeout < RedisSettings.Copies.minTimeout else { return }
    section["timeout"]?.refuse(
      "must be at least 300ms with replicas or durable: waitaof, since Redis ends a wait for missing replicas up to "
        + "100 ms late")
  }

  /// Refuses the members by which other programs name a Redis.
  private func refuseStrangers(_ section: Section) {
    guard section.isSound("kind"), kind == .embedded || section.isSound("topology") else {
      return section.declare(RedisSettings.strangers)
    }
    let remedy =
      if kind == .embedded {
        "for a Redis write kind: redis and \(RedisSettings.urlRemedy)"
      } else {
        redis.kind == .standalone ? RedisSettings.urlRemedy : "write HOST:PORT in nodes"
      }
    section.refuse(RedisSettings.strangers, "is no member; \(remedy)")
  }
}

private struct SecretSource: Hashable {
  var path: String
  var secret: Secret
}

extension StoreSettings {
  private var idSecretSource: SecretSource? {
    get {
      guard let path = idSecretFile, let secret = idSecret else { return nil }
      return SecretSource(path: path, secret: secret)
    }
    set { (idSecretFile, idSecret) = (newValue?.path, newValue?.secret) }
  }
}

extension Notation<SecretSource> {
  fileprivate static let idSecret = Notation.text(
    "the path of a file that holds a secret", show: { .text($0.path) },
    parse: { path throws(Refusal) in
      SecretSource(
        path: path, secret: try SecretFile.named(path, remedy: "`openssl rand -base64 32` makes a secret"))
    })
}
