import Crypto
import Idempotency

/// One of the secrets that seal responses. Each record has a key of its own, made by HKDF with SHA-256 (RFC 5869) from
/// the secret, the record's id and the client's key, which a reader of the store and the secret lacks.
struct SealingSecret: Sendable {
  /// A name that is stored beside what the secret sealed.
  let name: UInt32
  private let root: SymmetricKey

  init(_ secret: Secret) {
    root = SymmetricKey(
      data: HKDF<SHA256>.extract(
        inputKeyMaterial: SymmetricKey(data: Array(secret.revealed.utf8)),
        salt: Array("semel encryption at rest, version 1".utf8)))
    let name = HKDF<SHA256>.expand(
      pseudoRandomKey: root, info: Array("name".utf8), outputByteCount: 4)
    self.name = name.withUnsafeBytes { UInt32(bigEndian: $0.loadUnaligned(as: UInt32.self)) }
  }

  /// The key of one record, with the client's key; `nil` for what an operator recorded.
  func recordKey(_ id: RecordID, _ key: IdempotencyKey?) -> SymmetricKey {
    var info = Array("record".utf8)
    info.append(key == nil ? 0 : 1)
    for index in 0..<32 { info.append(id.digest[index]) }
    if let key { info += key.bytes }
    return HKDF<SHA256>.expand(pseudoRandomKey: root, info: info, outputByteCount: 32)
  }
}
