import Idempotency

/// The constant parts of commands, built once.
struct RedisKeys {
  /// `$LENGTH CRLF NAMESPACE:{`
  private let record: [UInt8]
  let namespace: String

  init(namespace: String) {
    self.namespace = namespace
    // The braces are the hash tag of a cluster: the response of a record is in the record's slot.
    let length = namespace.utf8.count + 3 + Digest256.textLength
    record = Array("$\(length)\r\n\(namespace):{".utf8)
  }

  var capacity: Int { record.count + Digest256.textLength + 8 }

  func write(_ id: RecordID, to writer: inout RedisCommandWriter) {
    writer.bytes(record)
    writer.digest(id.digest)
    writer.literal("}\r\n")
  }

  /// Returns the key of a response, which ends in `r:OWNER`, or in `r` if an earlier version has written it.
  func response(_ id: RecordID, _ place: String) -> String { "\(channel(id)):\(place)" }

  func channel(_ id: RecordID) -> String { "\(namespace):{\(id.text)}" }

  var prefix: String { "\(namespace):{" }

  /// A pattern that the key of every record matches. A namespace has no character that is special there.
  var pattern: String { "\(namespace):{*}" }

  /// The key of the hash with the facts of the namespace.
  var facts: String { "\(namespace):facts" }

  /// The key of facts about one master of a cluster, in the slot of a tag.
  func facts(_ tag: String) -> String { "\(namespace):{\(tag)}:facts" }

  /// A key that no record has. In a cluster it has the slot of the facts.
  func trial(beside factsKey: String) -> String {
    factsKey.lastIndex(of: "}").map { String(factsKey[...$0]) } ?? "\(prefix)trial}"
  }

  var census: String { "\(namespace):census" }
  var censusTurn: String { "\(namespace):census:turn" }

  var open: String { "\(namespace):open" }
  var openKeys: String { "\(namespace):open:keys" }

  var repairWish: String { "\(namespace):open:wish" }

  var invalidations: String { "\(namespace):invalidate" }

  /// The message on that channel by which all owners renew their leases at once.
  static let renewal = "renew"

  /// Returns the beginning of a command, up to the first key.
  static func head(_ script: RedisScript, digest: String) -> [UInt8] {
    head(script, "$7\r\nEVALSHA\r\n$\(digest.utf8.count)\r\n\(digest)\r\n")
  }

  /// Returns the beginning of a command with the whole script, for a Redis that has lost it.
  static func wholeHead(_ script: RedisScript) -> [UInt8] {
    head(script, "$4\r\nEVAL\r\n$\(script.source.utf8.count)\r\n\(script.source)\r\n")
  }

  private static func head(_ script: RedisScript, _ command: String) -> [UInt8] {
    let (keys, others) = script.arguments
    return Array("*\(3 + keys + others)\r\n\(command)$1\r\n\(keys)\r\n".utf8)
  }
}
