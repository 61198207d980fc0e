import NIOCore

/// The result of bringing a path into its normal form.
enum PathForm {
  /// The path is in its normal form already, as most paths are.
  case normal
  /// The normal form differs from the path received, by its segments or by their spelling alone.
  case changed(ByteBuffer, keepsSegments: Bool)

  /// Normalises a path, which is empty or begins with `/`.
  ///
  /// - Parameter keepsSlashes: Whether an encoded slash is a character of its segment, and stays as `%2F`.
  init(_ path: UnsafeRawBufferPointer, keepsSlashes: Bool = false) throws(WireError) {
    if try Self.isNormal(path) {
      self = .normal
      return
    }
    var output = ByteBuffer()
    var keepsSegments = true
    // The normal form is never longer than the original.
    _ = try output.writeWithUnsafeMutableBytes(minimumWritableBytes: path.count) {
      space throws(WireError) -> Int in
      var normaliser = PathNormaliser(output: space, keepsSlashes: keepsSlashes)
      let count = try normaliser.run(path)
      keepsSegments = normaliser.keepsSegments
      return count
    }
    self = .changed(output, keepsSegments: keepsSegments)
  }

  /// True if the path needs no change, because it has neither percent-encoding, which may need decoding, nor a dot
  /// segment.
  private static func isNormal(_ path: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    var previous: UInt8 = 0
    for at in 0..<path.count {
      let byte = path[at]
      if byte == 0x25 { return false }
      if byte == 0x5C || byte >= 0x80 { throw .badPath }
      if byte == 0x2E, previous == 0x2F, isDotSegment(path, at) { return false }
      previous = byte
    }
    return true
  }

  /// Whether the segment that begins at the dot is `.` or `..`, with or without parameters.
  private static func isDotSegment(_ path: UnsafeRawBufferPointer, _ dot: Int) -> Bool {
    var at = dot + 1
    if at < path.count, path[at] == 0x2E { at += 1 }
    return at == path.count || path[at] == 0x2F || path[at] == 0x3B
  }
}

/// Writes the normal form of a path (RFC 3986, sections 6.2.2 and 5.2.4). Decoding comes first, so that `%2e%2e` is a
/// dot segment.
private struct PathNormaliser {
  let output: UnsafeMutableRawBufferPointer
  /// Whether an encoded slash is a character of its segment.
  let keepsSlashes: Bool
  private var count = 0
  /// The offset of the segment that is being written.
  private var segment = 0
  /// The offset of what is written behind the segment's last encoded slash, or of the segment.
  private var piece = 0
  private var hasEncodedSlash = false
  private var hasParameters = false
  /// Whether no dot segment was removed.
  private(set) var keepsSegments = true

  init(output: UnsafeMutableRawBufferPointer, keepsSlashes: Bool) {
    self.output = output
    self.keepsSlashes = keepsSlashes
  }

  /// Writes the normal form of the path and returns its number of bytes.
  mutating func run(_ path: UnsafeRawBufferPointer) throws(WireError) -> Int {
    var at = 0
    while at < path.count {
      let byte = path[at]
      switch byte {
      case 0x2F:
        if piece > segment { try refuseDots() }
        slash()
        at += 1
      case 0x25:
        try decode(path, at)
        at += 3
      case 0x5C, 0x80...:
        throw .badPath
      case 0x3B:
        try parameters()
        at += 1
      default:
        put(byte)
        at += 1
      }
    }
    if piece > segment { try refuseDots() }
    _ = dropDotSegment()
    // Whoever decodes the slash first may find another path by these.
    if hasEncodedSlash, hasParameters || !keepsSegments { throw .badPath }
    return count
  }

  private mutating func put(_ byte: UInt8) {
    output[count] = byte
    count += 1
  }

  /// Begins a segment's parameters. They are refused after a dot segment: some servers remove the parameters first and
  /// then the segment, others keep the segment.
  private mutating func parameters() throws(WireError) {
    hasParameters = true
    let name = output[segment..<count]
    guard segment == 0 || name.isEmpty || name.count > 2 || name.contains(where: { $0 != 0x2E }) else {
      throw .badPath
    }
    put(0x3B)
  }

  /// Ends a segment. For a dot segment, the slash before it takes the place of the one after it.
  private mutating func slash() {
    if dropDotSegment() { return }
    put(0x2F)
    (segment, piece) = (count, count)
  }

  /// Removes a complete `.`, or a complete `..` with the segment before it; false if the segment is neither.
  private mutating func dropDotSegment() -> Bool {
    guard segment > 0, count > segment, count - segment <= 2, output[segment] == 0x2E,
      output[count - 1] == 0x2E
    else { return false }
    keepsSegments = false
    let isParent = count - segment == 2
    (count, piece) = (segment, segment)
    guard isParent, segment > 1 else { return true }
    segment -= 1
    while output[segment - 1] != 0x2F { segment -= 1 }
    (count, piece) = (segment, segment)
    return true
  }

  /// Writes a slash that is a character of its segment.
  private mutating func encodedSlash() throws(WireError) {
    try refuseDots()
    hasEncodedSlash = true
    for byte in "%2F".utf8 { put(byte) }
    piece = count
  }

  /// Refuses dots alone beside an encoded slash: whoever decodes that takes them for a dot segment.
  private func refuseDots() throws(WireError) {
    let name = output[piece..<count]
    guard name.isEmpty || name.count > 2 || name.contains(where: { $0 != 0x2E }) else { throw .badPath }
  }

  /// Handles an encoded byte: decodes it if that does not change the path's meaning, and refuses it if two readers
  /// would see two paths.
  private mutating func decode(_ path: UnsafeRawBufferPointer, _ at: Int) throws(WireError) {
    guard at + 2 < path.count, let high = ASCII.hexValue(path[at + 1]), let low = ASCII.hexValue(path[at + 2])
    else { throw .badPath }
    let byte = high << 4 | low
    if byte == 0x2F, keepsSlashes { return try encodedSlash() }
    if byte == 0x2F || byte == 0x5C || byte == 0 { throw .badPath }
    if ASCII.isUnreserved(byte) {
      put(byte)
    } else {
      put(0x25)
      put(ASCII.hexDigit(high))
      put(ASCII.hexDigit(low))
    }
  }
}
