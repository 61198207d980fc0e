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
      section?.section { schema.read($0, into: &store) }
    }
    guard reader.errors.isEmpty else { return .failure(SettingsErrors(issues: reader.errors)) }
    return .success(store)
  }
}
