import NIOCore

extension MessageHead {
  /// Creates a request's head from parts, as HTTP/2 delivers them, instead of from a parsed message. Fields are
  /// appended to it.
  ///
  /// Method and target must satisfy the same rules as parsed ones.
  public init(method: some StringProtocol, target: some StringProtocol) throws(WireError) {
    var bytes = ByteBufferAllocator().buffer(capacity: 512)
    bytes.writeSubstring(Substring(method))
    bytes.writeInteger(ASCII.space)
    bytes.writeSubstring(Substring(target))
    bytes.writeLiteral(" HTTP/1.1\r\n")
    let line = try bytes.withUnsafeReadableBytes { bytes throws(WireError) in
      try RequestLine(bytes, end: bytes.count - 2)
    }
    self.init(bytes: bytes, start: line.start, minorVersion: line.minorVersion, fields: [])
  }

  /// Appends a field line to a head that is made from parts.
  public mutating func append(
    _ name: StaticString, _ value: some StringProtocol, as known: FieldName = .other
  ) {
    let nameStart = bytes.writerIndex
    bytes.writeLiteral(name)
    append(nameStart: nameStart, value, as: known)
  }

  /// Appends a field line whose name is known only at run time, as HTTP/2 and C libraries deliver it.
  ///
  /// The line must satisfy the same rules as a parsed one, so neither part can contain a line's end.
  public mutating func append(name: some StringProtocol, value: some StringProtocol) throws(WireError) {
    var (name, value) = (String(name), String(value))
    guard !name.isEmpty, name.utf8.count <= UInt16.max, name.withUTF8({ $0.allSatisfy(ASCII.isTokenByte) })
    else { throw .badFieldName }
    guard value.withUTF8({ FieldScanner.isValue(UnsafeRawBufferPointer($0), 0, $0.count) }) else {
      throw .badFieldValue
    }
    let nameStart = bytes.writerIndex
    bytes.writeString(name)
    let known = withBytes(nameStart..<bytes.writerIndex) { FieldName.recognise($0) }
    append(nameStart: nameStart, value, as: known)
  }

  private mutating func append(nameStart: Int, _ value: some StringProtocol, as known: FieldName) {
    let nameLength = bytes.writerIndex - nameStart
    bytes.writeLiteral(": ")
    let valueStart = bytes.writerIndex
    let valueLength = bytes.writeSubstring(Substring(value))
    bytes.writeLiteral("\r\n")
    fields.append(
      Field(
        nameStart: UInt32(nameStart), valueStart: UInt32(valueStart), valueLength: UInt32(valueLength),
        nameLength: UInt16(nameLength), name: known))
    names.insert(FieldNameSet(known))
  }
}
