import Glibc
import Idempotency

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
  /// Whether the embedded store trusts the wall clock at its start, even if its file contradicts it.
  public var trustsClock = false
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
  /// Reads the section `store` of a file alone, for a command that needs nothing else: what is wrong in the other ones,
  /// such as a variable that its environment lacks, does not concern it.
  public static func load(
    text: String, file: String, environment: [String: String]
  ) -> Result<StoreSettings, SettingsErrors> {
    var store = StoreSettings()
    let reader = Reader.read(text, file: file, environment: environment) { root in
      let section = root.members("a mapping of members")?.first { $0.name == "store" }?.value
      section?.section { store.read($0) }
    }
    guard reader.errors.isEmpty else { return .failure(SettingsErrors(issues: reader.errors)) }
    return .success(store)
  }
}

extension StoreSettings {
  private enum Kind: String, CaseIterable { case embedded, redis }

  mutating func read(_ section: Section) {
    var kind = Kind.embedded
    section.choice("kind", into: &kind)
    switch kind {
    case .embedded: readEmbedded(section)
    case .redis:
      if let redis = RedisSettings.read(section) { place = .redis(redis) }
      section.refuse(["path", "trust_clock"], "belongs to kind: embedded; take it out")
    }
    // Twice the time-out must fit into a lease, which is 30 s by default.
    section.duration("timeout", into: &timeout, atLeast: 1, atMost: .seconds(10))
    refuseHastyWaits(section)
    section.flag("require_durable", into: &requireDurable)
    section.size("local_cache", into: &localCacheBytes, in: 0...1 << 40)
    if let name = section.member("namespace")?.parsed("a name", Identifier.parse) { namespace = name }
    readIDSecret(section)
    section.section("encryption") { encryption = EncryptionSettings.read($0) }
    section.choice("compression", into: &compression)
  }

  private mutating func readEmbedded(_ section: Section) {
    let path = section.text("path", "the path of a database file")
    place = .embedded(path: path ?? "semel.db")
    // SQLite takes these for something other than the name of a file.
    if let path, path == ":memory:" || path.hasPrefix("file:") {
      section["path"]?.refuse(
        "must be the path of a file, such as /var/lib/semel/semel.db: in memory, every record would be gone at the next "
          + "start")
    } else if let path, Self.isDirectory(path) {
      section["path"]?.refuse("names a directory; name a file in it, such as \(Self.file(in: path))")
    }
    // Nothing is reported about other members if `kind` itself cannot be read.
    if section.isSound("kind") {
      section.refuse(RedisSettings.members, "belongs to kind: redis; write that, or take it out")
      section.refuse(
        RedisSettings.strangers, "is no member; for a Redis write kind: redis and \(RedisSettings.urlRemedy)")
    } else {
      section.declare(RedisSettings.members + RedisSettings.strangers)
    }
    section.flag("trust_clock", into: &trustsClock)
    if trustsClock {
      section.member("trust_clock")?.warn(
        "is for one start after which the store's clock is right; take it out again, since a wrong clock would "
          + "make the store forget")
    }
  }

  private static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private static func file(in directory: String) -> String {
    directory + (directory.hasSuffix("/") ? "" : "/") + "semel.db"
  }

  /// Refuses a time-out that a single wait for missing replicas uses up.
  private func refuseHastyWaits(_ section: Section) {
    guard case .redis(let redis) = place, redis.copies.areDemanded,
      timeout < RedisSettings.Copies.minTimeout
    else { return }
    section["timeout"]?.refuse(
      "must be at least 300ms with replicas or durable: waitaof, since Redis ends a wait for missing replicas up to "
        + "100 ms late")
  }

  private mutating func readIDSecret(_ section: Section) {
    let wanted = "the path of a file that holds a secret"
    let read = section.member("id_secret_file")?.parsed(wanted) { path throws(Refusal) in
      let remedy = "`openssl rand -base64 32` makes a secret"
      return (path: path, secret: try SecretFile.named(path, remedy: remedy))
    }
    idSecretFile = read?.path
    idSecret = read?.secret
    guard let read, read.secret.revealed.utf8.count < 16 else { return }
    section["id_secret_file"]?.warn(
      "the secret is short enough to be guessed; `openssl rand -base64 32` makes one")
  }
}

extension StoreSettings {
  var shown: Shown {
    .members(
      placeMembers + [
        .init("timeout", .span(timeout)), .init("require_durable", .flag(requireDurable)),
        .init("local_cache", .size(localCacheBytes)),
        .init("namespace", .text(namespace)), .init("id_secret_file", idSecretFile.map(Shown.text)),
        .init("encryption", encryption?.shown), .init("compression", .text(compression.rawValue)),
      ])
  }

  private var placeMembers: [Shown.Member] {
    switch place {
    case .embedded(let path):
      [
        .init("kind", .text("embedded")), .init("path", .text(path)),
        .init("trust_clock", .flag(trustsClock)),
      ]
    case .redis(let redis): [.init("kind", .text("redis"))] + redis.shownMembers
    }
  }
}
