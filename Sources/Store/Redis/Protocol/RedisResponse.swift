import Idempotency
import NIOCore
import Wire

/// The format of a recorded response: version (1 byte), status (2), the lengths of fields and trailers (4 each),
/// fields, trailers and body, in network byte order. In version 2 an encoded response stands in the place of the
/// fields.
enum RedisResponse: Equatable {
  case plain(RecordedResponse)
  case encoded(status: Int, ByteBuffer)

  private enum Version: UInt8 {
    case plain = 1
    case encoded = 2
  }

  private static let headLength = 11

  init?(_ outcome: Outcome) {
    switch outcome {
    case .whole(let response): self = .plain(response)
    case .encoded(let encoded):
      guard let response = encoded.response else { return nil }
      self = .encoded(status: encoded.status, response)
    case .statusOnly: return nil
    }
  }

  var outcome: Outcome {
    switch self {
    case .plain(let response): .whole(response)
    case .encoded(let status, let bytes):
      .encoded(EncodedOutcome(status: status, location: nil, response: bytes))
    }
  }

  var length: Int {
    switch self {
    case .plain(let response):
      Self.headLength + response.fields.readableBytes + response.trailers.readableBytes
        + response.body.readableBytes
    case .encoded(_, let bytes): Self.headLength + bytes.readableBytes
    }
  }

  func write(to writer: inout RedisCommandWriter) {
    switch self {
    case .plain(let response):
      Self.writeHead(
        .plain, response.status, response.fields.readableBytes, response.trailers.readableBytes, to: &writer)
      writer.buffer(response.fields)
      writer.buffer(response.trailers)
      writer.buffer(response.body)
    case .encoded(let status, let bytes):
      Self.writeHead(.encoded, status, bytes.readableBytes, 0, to: &writer)
      writer.buffer(bytes)
    }
  }

  private static func writeHead(
    _ version: Version, _ status: Int, _ fields: Int, _ trailers: Int, to writer: inout RedisCommandWriter
  ) {
    writer.byte(version.rawValue)
    writer.bigEndian(UInt16(truncatingIfNeeded: status))
    writer.bigEndian(UInt32(fields))
    writer.bigEndian(UInt32(trailers))
  }

  /// Parses a response, whose parts share the buffer's memory; `nil` for another format, and if it is damaged.
  static func read(_ buffer: ByteBuffer) -> RedisResponse? {
    var buffer = buffer
    guard let version = buffer.readInteger(as: UInt8.self).flatMap(Version.init),
      let status = buffer.readInteger(as: UInt16.self),
      let fieldsLength = buffer.readInteger(as: UInt32.self),
      let trailersLength = buffer.readInteger(as: UInt32.self),
      let fields = buffer.readSlice(length: Int(fieldsLength)),
      let trailers = buffer.readSlice(length: Int(trailersLength))
    else { return nil }
    switch version {
    case .plain:
      return RecordedResponse(stored: Int(status), fields: fields, body: buffer, trailers: trailers)
        .map(RedisResponse.plain)
    case .encoded:
      guard trailersLength == 0, buffer.readableBytes == 0 else { return nil }
      return .encoded(status: Int(status), fields)
    }
  }
}

extension RecordedResponse {
  /// The value of the first `Location` field.
  var location: String? {
    fields.withUnsafeReadableBytes { bytes in
      var start = 0
      while let end = ASCII.index(of: ASCII.lineFeed, in: bytes, start..<bytes.count) {
        let line = bytes[start..<end]
        start = end + 1
        guard line.count > 9, line[line.startIndex + 8] == ASCII.colon,
          ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: line.prefix(8)), "location")
        else { continue }
        let value = line.dropFirst(9).filter { $0 != ASCII.carriageReturn }
        return String(decoding: value.drop { $0 == ASCII.space || $0 == ASCII.tab }, as: UTF8.self)
      }
      return nil
    }
  }
}

/// A command that is not a script, on one key.
struct RedisPlainCommand {
  enum Reply {
    case value(ByteBuffer)
    case integer(Int64)
    case none
    /// Redis returned an error, and has changed nothing.
    case refused(String)
    case lost(String)
  }

  let capacity: Int
  let write: (inout RedisCommandWriter) -> Void

}

extension RedisPlainCommand {
  init(_ words: [String]) {
    self.init(capacity: words.reduce(16) { $0 + $1.utf8.count + 16 }) { writer in
      writer.byte(0x2A)
      writer.number(words.count)
      writer.literal("\r\n")
      for word in words { writer.argument(word) }
    }
  }
}

extension RedisPlainCommand.Reply {
  init(_ reply: borrowing HiredisReply) {
    switch reply.kind {
    case .text: self = .value(reply.withBytes { ByteBuffer(bytes: $0) })
    case .integer: self = .integer(reply.integer)
    case .error: self = .refused(reply.withBytes { String(decoding: $0, as: UTF8.self) })
    case .null, .array: self = .none
    }
  }
}
