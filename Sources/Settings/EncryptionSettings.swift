import Idempotency

/// The secrets that seal recorded responses in the store.
public struct EncryptionSettings: Hashable, Sendable {
  /// The paths of the files with the secrets.
  public var secretFiles: [String]
  /// The secrets: the first one seals, each one opens. At least one.
  public var secrets: [Secret]
}

extension EncryptionSettings {
  /// A shorter secret can be guessed by whoever has the store.
  private static let minLength = 16

  private static let wanted = "a list of files that each hold a secret"

  static let schema = Schema(EncryptionSettings(secretFiles: [], secrets: [])) {
    Member(
      "secret_files", \.self, Notation(values: wanted, read: { read($0) }, show: { .texts($0.secretFiles) }),
      "files with a secret in the first line each: the first secret seals recorded responses, each one opens them"
    ).required("is missing: write \(wanted), the one that seals first")
  }

  private static func read(_ files: Value) -> EncryptionSettings? {
    guard let items = files.items(wanted) else { return nil }
    if items.isEmpty { files.refuse("must not be empty: write \(wanted), or take encryption out") }
    var settings = EncryptionSettings(secretFiles: [], secrets: [])
    for item in items {
      guard let path = item.text("the path of a file that holds a secret"),
        let secret = item.parsed("the path of a file that holds a secret", Self.secret)
      else { continue }
      if let index = settings.secrets.firstIndex(of: secret) {
        item.refuse("holds the same secret as \(settings.secretFiles[index]); take one of them out")
      }
      settings.secretFiles.append(path)
      settings.secrets.append(secret)
    }
    return settings
  }

  private static func secret(_ path: String) throws(Refusal) -> Secret {
    let remedy = "`openssl rand -base64 32` makes a secret"
    let secret = try SecretFile.named(path, remedy: remedy)
    guard secret.revealed.utf8.count >= minLength else {
      throw Refusal("names a file whose secret is shorter than \(minLength) bytes; \(remedy)")
    }
    return secret
  }
}
