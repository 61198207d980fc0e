import NIOCore

/// Extracts a body from a stream of bytes according to its framing. The pieces are slices of the input, or small chunks
/// joined.
struct BodyDecoder: Sendable {
  enum Part {
    /// Bytes of the body, at least one.
    case piece(ByteBuffer)
    case end(trailers: ByteBuffer)
  }

  private enum State {
    /// This number of bytes is left of a body of known length. Followed by the end.
    case counted(Int)
    /// The next bytes are a chunk's size line. Followed by `chunk` or, after a size of 0, by `trailers`.
    case chunkLine
    /// This number of bytes is left of a chunk. Followed by `chunkEnd`.
    case chunk(Int)
    /// The next bytes are the CRLF after a chunk. Followed by `chunkLine`.
    case chunkEnd
    /// The next bytes belong to the trailer section. Followed by the end.
    case trailers
    /// The body lasts until the connection ends. Only a response can have such a body.
    case untilClose
  }

  private var state: State
  private var scanner: FieldScanner
  private var extensionBytes = 0
  private let isOfResponse: Bool
  private let reading: Reading

  init(_ framing: BodyFraming, limits: HeadLimits, ofResponse: Bool = false, reading: Reading = .strict) {
    isOfResponse = ofResponse
    self.reading = reading
    scanner = FieldScanner(limits: limits, reading: reading)
    state =
      switch framing {
      case .none: .counted(0)
      case .length(let length): .counted(length)
      case .chunked: .chunkLine
      }
  }

  /// Creates a decoder of a body that ends with its connection.
  init(untilCloseWithin limits: HeadLimits) {
    scanner = FieldScanner(limits: limits)
    isOfResponse = true
    reading = .strict
    state = .untilClose
  }

  /// Whether the end of input is the regular end of the body.
  var endsAtClose: Bool {
    if case .untilClose = state { true } else { false }
  }

  /// The next part; `nil` if more bytes are needed. Must not be called after `end`.
  mutating func next(_ input: inout ByteBuffer) throws(WireError) -> Part? {
    while true {
      switch state {
      case .counted(let left):
        if left == 0 { return .end(trailers: ByteBuffer()) }
        guard let piece = Self.piece(&input, upTo: left) else { return nil }
        state = .counted(left - piece.readableBytes)
        return .piece(piece)
      case .chunkLine:
        if let data = SmallChunks.take(&input) { return .piece(data) }
        guard let size = try chunkSize(&input) else { return nil }
        state = size == 0 ? .trailers : .chunk(size)
      case .chunk(let left):
        guard let piece = Self.piece(&input, upTo: left) else { return nil }
        state = piece.readableBytes == left ? .chunkEnd : .chunk(left - piece.readableBytes)
        return .piece(piece)
      case .chunkEnd:
        guard try Self.lineEnd(&input) else { return nil }
        state = .chunkLine
      case .trailers:
        return try trailers(&input).map { .end(trailers: $0) }
      case .untilClose:
        return Self.piece(&input, upTo: .max).map { .piece($0) }
      }
    }
  }

  private static func piece(_ input: inout ByteBuffer, upTo limit: Int) -> ByteBuffer? {
    input.readableBytes == 0 ? nil : input.readSlice(length: min(limit, input.readableBytes))
  }

  private mutating func chunkSize(_ input: inout ByteBuffer) throws(WireError) -> Int? {
    let line = try input.withUnsafeReadableBytes { bytes throws(WireError) in
      try ChunkLine(bytes, reading: reading)
    }
    guard let line else { return nil }
    extensionBytes += line.extensionBytes
    guard extensionBytes <= HeadLimits.chunkExtensionBytes else { throw .chunkExtensionsTooLong }
    input.moveReaderIndex(forwardBy: line.length)
    return line.size
  }

  private static func lineEnd(_ input: inout ByteBuffer) throws(WireError) -> Bool {
    guard let first = input.getInteger(at: input.readerIndex, as: UInt8.self) else { return false }
    guard first == ASCII.carriageReturn else { throw .badChunk }
    guard let second = input.getInteger(at: input.readerIndex + 1, as: UInt8.self) else { return false }
    guard second == ASCII.lineFeed else { throw .badChunk }
    input.moveReaderIndex(forwardBy: 2)
    return true
  }

  private mutating func trailers(_ input: inout ByteBuffer) throws(WireError) -> ByteBuffer? {
    let length = try input.withUnsafeReadableBytes { bytes throws(WireError) in try scanner.section(in: bytes)
    }
    guard let length, var bytes = input.readSlice(length: length) else { return nil }
    let fields = scanner.takeFields(of: &bytes)
    return try Trailers.lines(fields, in: bytes, ofResponse: isOfResponse)
  }
}

/// The line before a chunk: its size in hexadecimal, and extensions, which are checked and dropped.
///
/// Extensions are accepted because RFC 9112, section 7.1.1, requires recipients to ignore unknown ones. The strict
/// reading accepts only the plain grammar, without white space, so that no reader can take a part of an extension for the
/// end of the line. The tolerant one also accepts white space, which servers pad sizes with, and escapes. A line feed and
/// all other control bytes are refused by both.
struct ChunkLine {
  let size: Int
  let extensionBytes: Int
  /// The length of the line with its CRLF, in bytes.
  let length: Int

  /// Parses the line at the start of `bytes`; `nil` if more bytes are needed.
  init?(_ bytes: UnsafeRawBufferPointer, reading: Reading = .strict) throws(WireError) {
    var at = 0
    var size = 0
    if reading == .tolerant { Self.skipSpace(bytes, &at) }
    guard at < HeadLimits.chunkLineBytes else { throw .chunkExtensionsTooLong }
    let first = at
    while at < bytes.count, let digit = ASCII.hexValue(bytes[at]) {
      // The limit of 2^59 is more than any transfer, and leaves room for one more digit.
      guard at - first < Self.maxDigits, size < 1 << 55 else { throw .badChunk }
      size = size << 4 | Int(digit)
      at += 1
    }
    guard at < bytes.count else { return nil }
    guard at > first else { throw .badChunk }
    let digits = at
    while at < bytes.count, bytes[at] != ASCII.carriageReturn {
      guard at < HeadLimits.chunkLineBytes else { throw .chunkExtensionsTooLong }
      guard Self.mayStand(bytes[at], reading) else { throw .badChunk }
      at += 1
    }
    guard at < bytes.count else { return nil }
    guard Self.areExtensions(UnsafeRawBufferPointer(rebasing: bytes[digits..<at]), reading) else {
      throw .badChunk
    }
    guard at + 1 < bytes.count else { return nil }
    guard bytes[at + 1] == ASCII.lineFeed else { throw .badChunk }
    self.size = size
    extensionBytes = at - digits
    length = at + 2
  }

  /// The maximum number of digits. Sixteen spell any 64-bit number; more are leading zeros, which serve only to evade
  /// filters.
  private static let maxDigits = 16

  private static func mayStand(_ byte: UInt8, _ reading: Reading) -> Bool {
    byte >= ASCII.space && byte != 0x7F || byte == ASCII.tab && reading == .tolerant
  }

  /// Whether the bytes are chunk extensions: `*( ";" token [ "=" ( token / quoted-string ) ] )`. The tolerant reading
  /// accepts white space between all of these, and behind the last.
  private static func areExtensions(_ bytes: UnsafeRawBufferPointer, _ reading: Reading) -> Bool {
    var at = 0
    func skip() { if reading == .tolerant { skipSpace(bytes, &at) } }
    skip()
    while at < bytes.count {
      guard bytes[at] == 0x3B else { return false }
      at += 1
      skip()
      guard skipToken(bytes, &at) else { return false }
      skip()
      guard at < bytes.count, bytes[at] == 0x3D else { continue }
      at += 1
      skip()
      guard skipQuoted(bytes, &at, reading) || skipToken(bytes, &at) else { return false }
      skip()
    }
    return true
  }

  private static func skipSpace(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) {
    while at < bytes.count, bytes[at] == ASCII.space || bytes[at] == ASCII.tab { at += 1 }
  }

  private static func skipToken(_ bytes: UnsafeRawBufferPointer, _ at: inout Int) -> Bool {
    let start = at
    while at < bytes.count, ASCII.isTokenByte(bytes[at]) { at += 1 }
    return at > start
  }

  /// Skips a quoted string; false if there is none, or if it contains an escape that the reading does not accept.
  private static func skipQuoted(
    _ bytes: UnsafeRawBufferPointer, _ at: inout Int, _ reading: Reading
  ) -> Bool {
    guard at < bytes.count, bytes[at] == 0x22 else { return false }
    at += 1
    while at < bytes.count, bytes[at] != 0x22 {
      if bytes[at] == 0x5C {
        guard reading == .tolerant else { return false }
        at += 1
      }
      at += 1
    }
    guard at < bytes.count else { return false }
    at += 1
    return true
  }
}

/// The data of chunks that are small and have arrived whole, as one piece.
///
/// A piece of one byte costs those who handle it about as much as one of a thousand, so that one read of 64 KiB could
/// bring the work of 11,000 pieces. Only the plainest chunks are joined; whatever is unusual is left to `ChunkLine`,
/// which alone refuses.
enum SmallChunks {
  /// The size from which a chunk is a piece of its own, in bytes: a slice then costs less than a copy.
  private static let maxSize = 1 << 10
  /// The bytes of input after which a piece ends.
  private static let maxInput = 16 << 10

  /// Takes the chunks at the start of the input, and returns their data; `nil` if there are not at least two.
  static func take(_ input: inout ByteBuffer) -> ByteBuffer? {
    var joined = ByteBuffer()
    let length = input.withUnsafeReadableBytes { bytes -> Int? in
      guard let first = Chunk(bytes, at: 0), Chunk(bytes, at: first.end) != nil else { return nil }
      var end = 0
      joined.writeWithUnsafeMutableBytes(minimumWritableBytes: min(bytes.count, maxInput + maxSize)) {
        target in
        var count = 0
        var next: Chunk? = first
        while let chunk = next {
          let data = UnsafeRawBufferPointer(rebasing: bytes[chunk.data])
          UnsafeMutableRawBufferPointer(rebasing: target[count...]).copyMemory(from: data)
          count += data.count
          end = chunk.end
          next = end < maxInput ? Chunk(bytes, at: end) : nil
        }
        return count
      }
      return end
    }
    guard let length else { return nil }
    input.moveReaderIndex(forwardBy: length)
    // Behind few chunks there may be much else, which the buffer had room for.
    return joined.compact
  }

  /// A chunk with data and without extensions.
  private struct Chunk {
    private static let maxDigits = 3

    let data: Range<Int>
    /// The offset behind the chunk's last CRLF.
    let end: Int

    /// Parses the chunk that begins at this offset; `nil` if it is no small one, or not all of it is here.
    init?(_ bytes: UnsafeRawBufferPointer, at start: Int) {
      var at = start
      var size = 0
      while at < bytes.count, let digit = ASCII.hexValue(bytes[at]) {
        guard at - start < Self.maxDigits else { return nil }
        size = size << 4 | Int(digit)
        at += 1
      }
      let first = at + 2
      guard 1..<maxSize ~= size, Self.isLineEnd(bytes, at), Self.isLineEnd(bytes, first + size) else {
        return nil
      }
      data = first..<first + size
      end = data.upperBound + 2
    }

    private static func isLineEnd(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> Bool {
      at + 1 < bytes.count && bytes[at] == ASCII.carriageReturn && bytes[at + 1] == ASCII.lineFeed
    }
  }
}
