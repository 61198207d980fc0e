import Idempotency

/// The fixed parts of commands, made once.
struct RedisKeys {
  /// `$LENGTH CRLF NAMESPACE:{`, for the record's key and for the answer's.
  private let record: [UInt8]
  private let answer: [UInt8]
  private let namespace: String

  init(namespace: String) {
    self.namespace = namespace
    // Braces are the hash tag of a cluster: both keys stand in one slot.
    let length = namespace.utf8.count + 3 + Digest256.textLength
    record = Array("$\(length)\r\n\(namespace):{".utf8)
    answer = Array("$\(length + 2)\r\n\(namespace):{".utf8)
  }

  /// The most bytes that `write` writes.
  var capacity: Int { record.count + answer.count + 2 * Digest256.textLength + 8 }

  /// Both keys as arguments.
  func write(_ id: RecordID, to writer: inout RedisCommandWriter) {
    writer.bytes(record)
    let text = writer.count
    writer.digest(id.digest)
    writer.literal("}\r\n")
    writer.bytes(answer)
    writer.again(from: text, length: Digest256.textLength)
    writer.literal("}:r\r\n")
  }

  /// The record's key, which is also the channel on which its ends are told.
  func channel(_ id: RecordID) -> String { "\(namespace):{\(id.text)}" }

  /// How a record's key begins, up to its id.
  var prefix: String { "\(namespace):{" }

  /// A pattern that the key of every record fits. Names of namespaces hold nothing that a pattern could take for its
  /// own.
  var pattern: String { "\(namespace):{*}" }

  /// The hash that holds the facts of the namespace.
  var facts: String { "\(namespace):facts" }

  /// The last count of open records, and whose turn it is to count.
  var census: String { "\(namespace):census" }
  var censusTurn: String { "\(namespace):census:turn" }

  /// The channel on which every node hears what it must no longer keep in its cache.
  var invalidations: String { "\(namespace):invalidate" }

  /// The command up to the first key, by the digest under which Redis knows the script.
  static func head(_ script: RedisScript, digest: String) -> [UInt8] {
    head(script, "$7\r\nEVALSHA\r\n$\(digest.utf8.count)\r\n\(digest)\r\n")
  }

  /// The same with the whole script, for a Redis that has lost it.
  static func wholeHead(_ script: RedisScript) -> [UInt8] {
    head(script, "$4\r\nEVAL\r\n$\(script.source.utf8.count)\r\n\(script.source)\r\n")
  }

  private static func head(_ script: RedisScript, _ command: String) -> [UInt8] {
    let (keys, others) = script.arguments
    return Array("*\(3 + keys + others)\r\n\(command)$1\r\n\(keys)\r\n".utf8)
  }
}
