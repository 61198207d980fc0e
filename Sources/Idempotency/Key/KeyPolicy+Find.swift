import NIOCore
import Wire

extension KeyPolicy {
  /// The key, as far as head and query determine it.
  ///
  /// The sources are read in their order, and the first that yields a key counts. An invalid key in a source is an
  /// error, even if a later source has a valid one.
  public func keyBeforeBody(head: MessageHead, query: ByteBuffer?) throws(Problem) -> KeyFinding {
    for source in from {
      guard let reading = source.readBeforeBody(head: head, query: query) else { return .needsBody }
      if let key = try key(of: reading) { return .found(key) }
    }
    return .missing
  }

  /// The key from any source; `nil` if none yields one.
  public func key(head: MessageHead, query: ByteBuffer?, body: ByteBuffer) throws(Problem) -> IdempotencyKey?
  {
    for source in from {
      let reading = source.readBeforeBody(head: head, query: query) ?? source.readBody(body, head: head)
      if let key = try key(of: reading) { return key }
    }
    return nil
  }

  /// The key from an operator's text, checked against the same rules.
  ///
  /// If a header may carry the key, the text is read as its value: `"abc"` is the key `abc`. A comma is refused only
  /// if every source is a header, since the others take it.
  public func key(text: String) throws(Problem) -> IdempotencyKey {
    let bytes = Array(text.utf8)
    var reading = KeyReading.key(bytes)
    if from.contains(where: \.isHeader), bytes.first == UInt8(ascii: "\"") || from.allSatisfy(\.isHeader) {
      reading = bytes.withUnsafeBytes { HeaderKey.read($0) }
    }
    guard let key = try key(of: reading) else { throw .keyMissing(self) }
    return key
  }

  private func key(of reading: KeyReading) throws(Problem) -> IdempotencyKey? {
    switch reading {
    case .none: return nil
    case .fault(let fault): throw .keyInvalid(fault, policy: self)
    case .key(let bytes):
      if let fault = fault(in: bytes) { throw .keyInvalid(fault, policy: self) }
      return IdempotencyKey(checked: bytes)
    }
  }

  private func fault(in bytes: [UInt8]) -> KeyFault? {
    if bytes.count > maxLength { return .tooLong }
    if bytes.count < minLength { return .tooShort }
    if !bytes.allSatisfy({ 0x21...0x7E ~= $0 }) { return .illegalByte }
    switch format {
    case .any: return nil
    case .uuid: return Self.isUUID(bytes) ? nil : .notUUID
    }
  }

  /// Whether the bytes are the 36 characters of a UUID, in either letter case (RFC 9562, section 4).
  private static func isUUID(_ bytes: [UInt8]) -> Bool {
    guard bytes.count == 36 else { return false }
    for (index, byte) in bytes.enumerated() {
      switch index {
      case 8, 13, 18, 23: guard byte == UInt8(ascii: "-") else { return false }
      default: guard ASCII.hexValue(byte) != nil else { return false }
      }
    }
    return true
  }
}
