import NIOCore
import Wire

extension KeyPolicy {
  /// The fields in which responses repeat keys, in lower case.
  var echoFields: [String] {
    from.compactMap { source in
      if case .header(let name) = source { name } else { nil }
    } + ["idempotency-key"]
  }

  /// The line by which a response repeats a key: the request's own, or `Idempotency-Key` for a key from elsewhere. `nil`
  /// for a key that is made from several values or from the payload.
  public func echo(of key: IdempotencyKey, in head: MessageHead) -> ByteBuffer? {
    guard key.isOfClient else { return nil }
    for source in from {
      guard case .header(let name) = source else { continue }
      for field in head.fields(named: name) where head.holds(key, at: field.valueRange) {
        return Self.line { line in
          line.writeImmutableBuffer(head.slice(field.nameRange))
          line.writeLiteral(": ")
          line.writeImmutableBuffer(head.slice(field.valueRange))
        }
      }
    }
    return Self.line { line in
      line.writeLiteral("Idempotency-Key: ")
      key.writeField(into: &line)
    }
  }

  private static func line(_ write: (inout ByteBuffer) -> Void) -> ByteBuffer {
    var line = ByteBuffer()
    write(&line)
    line.writeLiteral("\r\n")
    return line
  }
}

extension MessageHead {
  /// Whether the value at a position is this key, bare or quoted.
  fileprivate func holds(_ key: IdempotencyKey, at range: Range<Int>) -> Bool {
    switch withBytes(range, HeaderKey.read) {
    case .key(let bytes), .quoted(let bytes): bytes == key.bytes
    case .none, .fault: false
    }
  }
}

extension IdempotencyKey {
  /// Whether a client sent it as it is.
  fileprivate var isOfClient: Bool { bytes.allSatisfy { 0x20...0x7E ~= $0 } }

  /// Writes the key as a field's value: bare, or as a string of RFC 8941 where it would be read as something else.
  fileprivate func writeField(into out: inout ByteBuffer) {
    let isBare =
      bytes.first != UInt8(ascii: "\"") && !bytes.contains { $0 == ASCII.space || $0 == UInt8(ascii: ",") }
    guard !isBare else {
      out.writeBytes(bytes)
      return
    }
    out.writeLiteral("\"")
    for byte in bytes {
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { out.writeLiteral("\\") }
      out.writeInteger(byte)
    }
    out.writeLiteral("\"")
  }
}
