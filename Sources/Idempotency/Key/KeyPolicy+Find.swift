import NIOCore
import Wire

extension KeyPolicy {
  /// The key, as far as head and query determine it.
  ///
  /// The sources are read in their order, and the first that yields a key counts. An invalid key in a source is an
  /// error, even if a later source has a valid one.
  public func keyBeforeBody(head: MessageHead, query: ByteBuffer?) throws(Problem) -> KeyFinding {
    for source in from {
      guard !source.isInBody else { return .needsBody }
      if let key = try key(from: source, head: head, query: query) { return .found(key) }
      try refuseHidden(source, in: query, head)
    }
    return .missing
  }

  /// The key from the first source in head or query that yields one; `nil` if none does. For inquiries, which have no
  /// body.
  func keyOutsideBody(head: MessageHead, query: ByteBuffer?) throws(Problem) -> IdempotencyKey? {
    for source in from where !source.isInBody {
      if let key = try key(from: source, head: head, query: query) { return key }
    }
    return nil
  }

  /// The key from any source; `nil` if none yields one. A source before it in which the body may hide a key is an
  /// error: the same intent, in a body that can be read, would have that one.
  ///
  /// - Parameter fingerprint: The request's fingerprint by `Recipe.ofKeys`, called only if it is the key.
  public func key(
    head: MessageHead, query: ByteBuffer?, body: ByteBuffer, fingerprint: () -> Fingerprint
  ) throws(Problem) -> IdempotencyKey? {
    for (index, source) in from.enumerated() {
      let key =
        if case .payload = source { IdempotencyKey(payload: fingerprint()) } else {
          try key(from: source, head: head, query: query, body: body)
        }
      guard let key else {
        try refuseHidden(source, in: query, head)
        continue
      }
      guard !from.prefix(index).contains(where: { $0.mayHideKey(in: body, head) }) else {
        throw .keyInvalid(.unreadableBody, policy: self)
      }
      return key
    }
    return nil
  }

  /// Whether the body may contain a key that cannot be read: it is of the kind in which a source looks for it, and is
  /// compressed or malformed, or its media type is ambiguous.
  public func mayHide(in body: ByteBuffer, _ head: MessageHead) -> Bool {
    from.contains { $0.mayHideKey(in: body, head) }
  }

  /// Refuses a query in which some readers find the source's key and others do not.
  private func refuseHidden(
    _ source: KeySource, in query: ByteBuffer?, _ head: MessageHead
  ) throws(Problem) {
    guard let query, source.mayHideKey(inQuery: query, head) else { return }
    throw .keyInvalid(.hidden, policy: self)
  }

  private func key(
    from source: KeySource, head: MessageHead, query: ByteBuffer?, body: ByteBuffer = ByteBuffer()
  ) throws(Problem) -> IdempotencyKey? {
    guard case .composite(let parts) = source else {
      return try value(of: source.read(head: head, query: query, body: body))
        .map { IdempotencyKey(checked: $0) }
    }
    var values: [[UInt8]] = []
    for part in parts {
      guard let value = try value(of: part.read(head: head, query: query, body: body)) else { return nil }
      values.append(value)
    }
    return IdempotencyKey(parts: values)
  }

  /// The key from an operator's texts: one, or one for each part of a composite key.
  public func key(texts: [String]) throws(Problem) -> IdempotencyKey {
    if texts.count == 1, from.contains(where: \.takesText) { return try key(text: texts[0]) }
    guard from.contains(where: { $0.parts.count == texts.count && $0.takesTexts }) else {
      throw .keyMissing(self)
    }
    let mayBeQuoted = from.contains { $0.takesTexts && $0.parts.contains(where: \.isHeader) }
    var values: [[UInt8]] = []
    for text in texts {
      let bytes = Array(text.utf8)
      let reading: KeyReading = text.isEmpty ? .none : mayBeQuoted ? .quoted(bytes) : .key(bytes)
      guard let value = try value(of: reading) else {
        throw .keyMissing(self)
      }
      values.append(value)
    }
    return IdempotencyKey(parts: values)
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
    guard let value = try value(of: reading) else { throw .keyMissing(self) }
    return IdempotencyKey(checked: value)
  }

  /// Whether a field that may hold the key is there and empty, so that its client believes to have sent one.
  public func hasEmptyField(_ head: MessageHead) -> Bool {
    from.contains { source in
      guard case .header(let name) = source, !head.fields(named: name).isEmpty else { return false }
      guard case .none = source.read(head: head, query: nil, body: ByteBuffer()) else { return false }
      return true
    }
  }

  /// A value that satisfies the route's rules; `nil` if there is none.
  ///
  /// - Parameter item: The index of the batch's item that was read, if it was one.
  func value(of reading: KeyReading, inItem item: Int? = nil) throws(Problem) -> [UInt8]? {
    switch reading {
    case .none: return nil
    case .fault(let fault): throw .keyInvalid(fault, policy: self, inItem: item)
    case .key(let bytes):
      if let fault = fault(in: bytes) { throw .keyInvalid(fault, policy: self, inItem: item) }
      return bytes
    case .quoted(let bytes):
      if let fault = fault(in: bytes, isQuoted: true) {
        throw .keyInvalid(fault, policy: self, inItem: item)
      }
      return bytes
    }
  }

  private func fault(in bytes: [UInt8], isQuoted: Bool = false) -> KeyFault? {
    if bytes.count > maxLength { return .tooLong }
    if placeholders == .refuse, KeyPlaceholder.isOne(bytes) { return .placeholder }
    if bytes.count < minLength { return .tooShort }
    if !bytes.allSatisfy({ 0x21...0x7E ~= $0 || isQuoted && $0 == ASCII.space }) { return .illegalByte }
    // Readers that trim it would take another key.
    if bytes.first == ASCII.space || bytes.last == ASCII.space { return .illegalByte }
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

extension KeySource {
  /// Whether the body may contain the source's key, or a part of it, that cannot be read. It has none if a part that is
  /// a field is missing.
  fileprivate func mayHideKey(in body: ByteBuffer, _ head: MessageHead) -> Bool {
    body.readableBytes > 0 && parts.contains { $0.mayHide(in: body, head) }
      && !parts.contains { $0.isMissingField(of: head) }
  }

  /// Whether a query may contain the source's key, or a part of it, that only some readers find.
  fileprivate func mayHideKey(inQuery query: ByteBuffer, _ head: MessageHead) -> Bool {
    let mayHide = parts.contains { part in
      guard case .query(let name) = part else { return false }
      return query.withUnsafeReadableBytes { FormPairs.mayHide(name, in: $0, max: FormPairs.maxParameters) }
    }
    return mayHide && !parts.contains { $0.isMissingField(of: head) }
  }

  private func isMissingField(of head: MessageHead) -> Bool {
    guard case .header(let name) = self, case .absent = head.find(name) else { return false }
    return true
  }

  /// Whether one text of an operator may be its key.
  fileprivate var takesText: Bool {
    switch self {
    case .header, .query, .json, .form: true
    case .payload, .composite: false
    }
  }

  /// Whether several texts of an operator, one for each part, may be its key.
  fileprivate var takesTexts: Bool {
    if case .composite = self { true } else { false }
  }
}

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
