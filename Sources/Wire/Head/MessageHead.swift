import NIOCore

/// The head of a request or a response: one buffer of bytes and an index of the fields in it.
///
/// Nothing is copied out of the buffer and nothing is allocated for a field. A position is an offset from the buffer's
/// own first byte (`bytes.readerIndex` stays 0). Forwarding, recording and replaying copy ranges of bytes.
public struct MessageHead: Sendable {
  /// The positions of one field line's name and value, and the name if it is known.
  public struct Field: Sendable, Equatable {
    public var nameStart: UInt32
    public var valueStart: UInt32
    public var valueLength: UInt32
    public var nameLength: UInt16
    public var name: FieldName

    public var nameRange: Range<Int> { Int(nameStart)..<Int(nameStart) + Int(nameLength) }
    public var valueRange: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueLength) }
  }

  /// The contents of the first line.
  public enum StartLine: Sendable, Equatable {
    case request(method: Method, methodRange: Range<Int>, target: Range<Int>)
    case status(Int, reason: Range<Int>)
  }

  /// The bytes of the whole head, as received or made.
  public var bytes: ByteBuffer
  public var start: StartLine
  /// The minor version of HTTP/1: 0 or 1. For a head from HTTP/2 it is 1.
  public var minorVersion: UInt8
  /// The field lines in the order of their arrival.
  public internal(set) var fields: [Field]
  /// The known names among the fields, so that a question about a field that is absent costs one bit test.
  public internal(set) var names: FieldNameSet

  public init(bytes: ByteBuffer, start: StartLine, minorVersion: UInt8, fields: [Field]) {
    self.bytes = bytes
    self.start = start
    self.minorVersion = minorVersion
    self.fields = fields
    names = fields.reduce(into: []) { $0.formUnion(FieldNameSet($1.name)) }
  }

  /// Creates an empty head, to which `append` adds fields.
  public init(start: StartLine, capacity: Int = 256) {
    self.init(
      bytes: ByteBufferAllocator().buffer(capacity: capacity), start: start, minorVersion: 1, fields: [])
  }
}

extension MessageHead {
  /// The memory that the head holds, in bytes: its index, and the whole buffer that it was cut from, which is a read of
  /// up to 64 KiB. Up to 4 KiB the rest of that does not count (`ByteBuffer.compact`).
  public var heldBytes: Int {
    let text = bytes.storageCapacity > 4 << 10 ? bytes.storageCapacity : bytes.readableBytes
    return text + fields.count * MemoryLayout<Field>.stride
  }

  /// The methods that Semel distinguishes. The method's bytes are at `methodRange`.
  public enum Method: UInt8, Sendable {
    case get, head, post, put, patch, delete, options, trace, connect, other
  }

  /// The method of a request, `other` for a response.
  public var method: Method {
    if case .request(let method, _, _) = start { method } else { .other }
  }

  /// The status code of a response, 0 for a request.
  public var status: Int {
    if case .status(let code, _) = start { code } else { 0 }
  }

  /// The position of a request's method, empty for a response.
  public var methodRange: Range<Int> {
    if case .request(_, let range, _) = start { range } else { 0..<0 }
  }

  /// The position of a request's target, empty for a response.
  public var target: Range<Int> {
    if case .request(_, _, let target) = start { target } else { 0..<0 }
  }

  /// The first field of this name; `nil` if there is none.
  public func first(_ name: FieldName) -> Field? {
    guard names.contains(name) else { return nil }
    for field in fields where field.name == name { return field }
    return nil
  }

  /// The number of field lines of this name.
  public func count(_ name: FieldName) -> Int {
    guard names.contains(name) else { return 0 }
    var count = 0
    for field in fields where field.name == name { count += 1 }
    return count
  }

  /// All fields of this name, which is given in lower case and may be known or not.
  public func fields(named lowercased: String) -> [Field] {
    var lowercased = lowercased
    return lowercased.withUTF8 { wanted in
      let wanted = UnsafeRawBufferPointer(wanted)
      return bytes.withUnsafeReadableBytes { all in
        fields.filter {
          ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: all[$0.nameRange]), wanted)
        }
      }
    }
  }

  /// Calls `body` with the bytes of a range, which are valid during the call only.
  public func withBytes<T>(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
    invariant(range.upperBound <= bytes.readableBytes, "a part of a head lies beyond it")
    return try bytes.withUnsafeReadableBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// The bytes of a range as a buffer that shares this head's storage.
  public func slice(_ range: Range<Int>) -> ByteBuffer { bytes.slice(range) }

  /// The bytes of a range as text, for logs, settings and rare paths.
  public func string(_ range: Range<Int>) -> String {
    withBytes(range) { String(decoding: $0, as: UTF8.self) }
  }

  /// The value of the first field of this name as text; `nil` if there is none.
  public func string(_ name: FieldName) -> String? {
    first(name).map { string($0.valueRange) }
  }

  /// Whether the comma-separated lists in all fields of this name contain the token, which is given in lower case, among
  /// the elements that are read.
  public func list(_ name: FieldName, contains token: StaticString) -> Bool {
    guard names.contains(name) else { return false }
    for field in fields where field.name == name {
      let found = withBytes(field.valueRange) { value in
        ListElements(value).contains { ASCII.equalsIgnoringCase($0, token) }
      }
      if found { return true }
    }
    return false
  }

  /// Calls `body` with each element of the comma-separated lists in all fields of these names, in their order, until it
  /// returns false.
  ///
  /// - Returns: Whether all elements were read. None are left out unless `body` has returned false, or a list has too
  ///   many.
  @discardableResult
  public func readList(of names: FieldNameSet, _ body: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    guard !self.names.isDisjoint(with: names) else { return true }
    for field in fields where names.contains(field.name) {
      let isWhole = withBytes(field.valueRange) { value in
        var elements = ListElements(value)
        while let element = elements.next() {
          guard body(element) else { return false }
        }
        return !elements.isCut
      }
      guard isWhole else { return false }
    }
    return true
  }

  /// Whether `Connection` names a field, whose name is given in lower case. A proxy must then not forward that field.
  public func connectionNames(_ lowercased: String) -> Bool {
    guard first(.connection) != nil else { return false }
    var lowercased = lowercased
    return lowercased.withUTF8 { wanted in
      let wanted = UnsafeRawBufferPointer(wanted)
      return fields.contains { field in
        field.name == .connection
          && withBytes(field.valueRange) { value in
            ListElements(value).contains { ASCII.equalsIgnoringCase($0, wanted) }
          }
      }
    }
  }

  /// Whether `Connection` names a known field.
  public func connectionNames(_ name: FieldName) -> Bool {
    list(.connection, contains: name.lowercased)
  }

  /// The bytes without the spaces and tabs around them.
  public static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
    var bytes = bytes
    while let first = bytes.first, first == ASCII.space || first == ASCII.tab { bytes = bytes.dropFirst() }
    while let last = bytes.last, last == ASCII.space || last == ASCII.tab { bytes = bytes.dropLast() }
    return bytes
  }
}

extension MessageHead.Field {
  /// Creates a field from positions that a parser outside this module has found.
  public init(
    nameStart: Int, nameLength: UInt16, valueStart: Int, valueLength: Int, name: FieldName
  ) {
    self.nameStart = UInt32(nameStart)
    self.nameLength = nameLength
    self.valueStart = UInt32(valueStart)
    self.valueLength = UInt32(valueLength)
    self.name = name
  }
}

extension ByteBuffer {
  /// The bytes of a range, counted from the first readable one, as a buffer that shares this one's storage.
  func slice(_ range: Range<Int>) -> ByteBuffer {
    getSlice(at: readerIndex + range.lowerBound, length: range.count) ?? ByteBuffer()
  }
}

extension MessageHead {
  /// Whether the message uses a scheme that authenticates connections instead of requests (`Negotiate`, RFC 4559, and
  /// `NTLM`), so that its connection may belong to one user from now on.
  public var bindsConnection: Bool {
    guard !names.isDisjoint(with: .authentication) else { return false }
    return fields.contains { field in
      (field.name == .authorization || field.name == .wwwAuthenticate)
        && withBytes(field.valueRange) { Self.namesBindingScheme($0) }
    }
  }

  /// Whether `Negotiate` or `NTLM` stands in the place of a scheme, in a list of challenges or alone, or may stand in one
  /// that is too long to be read.
  private static func namesBindingScheme(_ value: UnsafeRawBufferPointer) -> Bool {
    var elements = ListElements(value)
    while let element = elements.next() {
      let end = element.firstIndex { $0 == ASCII.space || $0 == ASCII.tab } ?? element.count
      let scheme = UnsafeRawBufferPointer(rebasing: element[..<end])
      if ASCII.equalsIgnoringCase(scheme, "negotiate") || ASCII.equalsIgnoringCase(scheme, "ntlm") {
        return true
      }
    }
    return elements.isCut
  }
}

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
