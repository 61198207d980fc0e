import Idempotency
import NIOCore
import Wire

extension Target {
  private static let sources: [KeySource] = [
    .header("idempotency-key"), .query("key"), .json("/order/0/key"), .form("key"),
  ]

  /// A request with a key somewhere: a key that is found is one that may be, before the body comes and after.
  static func keysFault(in bytes: [UInt8]) -> String? {
    guard let sample = Sample(bytes) else { return nil }
    for source in sources {
      var policy = KeyPolicy()
      policy.from = [source]
      let found = try? policy.key(head: sample.head, query: sample.target.query, body: sample.body) {
        Fingerprint(recipe: Recipe().ofKeys, digest: .sha256(of: []))
      }
      guard let key = found else { continue }
      guard 1...255 ~= key.bytes.count, key.bytes.allSatisfy({ 0x21...0x7E ~= $0 }) else {
        return "a key of other bytes than allowed: \(key.bytes)"
      }
      let early = try? policy.keyBeforeBody(head: sample.head, query: sample.target.query)
      guard early == (source.isInBody ? .needsBody : .found(key)) else {
        return "another finding before the body: \(String(describing: early))"
      }
      guard quoted(key.bytes) == key else { return "quoted it is another key: \(key.bytes)" }
    }
    return nil
  }

  /// The key that a header has which carries these bytes as a string of RFC 8941.
  private static func quoted(_ key: [UInt8]) -> IdempotencyKey? {
    var value: [UInt8] = []
    for byte in key {
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { value.append(UInt8(ascii: "\\")) }
      value.append(byte)
    }
    let line = "POST / HTTP/1.1\nIdempotency-Key: \"".utf8 + value + "\"\n\n".utf8
    guard let sample = Sample(Array(line)),
      case .found(let key)? = try? KeyPolicy().keyBeforeBody(head: sample.head, query: nil)
    else { return nil }
    return key
  }
}
