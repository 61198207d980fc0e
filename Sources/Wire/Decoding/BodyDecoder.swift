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
