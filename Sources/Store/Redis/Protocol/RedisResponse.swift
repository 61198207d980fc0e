import Idempotency
import NIOCore
import Wire

/// The format of a recorded response: version (1 byte), status (2), the lengths of fields and trailers (4 each), then
/// fields, trailers and body. Numbers are in network byte order.
enum RedisResponse {
  static let version: UInt8 = 1
  static let otherFormat = "the recorded response has another format than this version of Semel reads"
  private static let headLength = 11

  static func length(_ response: RecordedResponse) -> Int {
    headLength + response.fields.readableBytes + response.trailers.readableBytes + response.body.readableBytes
  }

  static func write(_ response: RecordedResponse, to writer: inout RedisCommandWriter) {
    writer.byte(version)
    writer.bigEndian(UInt16(truncatingIfNeeded: response.status))
    writer.bigEndian(UInt32(response.fields.readableBytes))
    writer.bigEndian(UInt32(response.trailers.readableBytes))
    writer.buffer(response.fields)
    writer.buffer(response.trailers)
    writer.buffer(response.body)
  }

  /// Parses a response, whose parts share the buffer's memory; `nil` for a format that this version does not write.
  static func read(_ buffer: ByteBuffer) -> RecordedResponse? {
    var buffer = buffer
    guard buffer.readInteger(as: UInt8.self) == version, let status = buffer.readInteger(as: UInt16.self),
      let fieldsLength = buffer.readInteger(as: UInt32.self),
      let trailersLength = buffer.readInteger(as: UInt32.self),
      let fields = buffer.readSlice(length: Int(fieldsLength)),
      let trailers = buffer.readSlice(length: Int(trailersLength))
    else { return nil }
    return RecordedResponse(stored: Int(status), fields: fields, body: buffer, trailers: trailers)
  }
}

extension RecordedResponse {
  /// The value of the first `Location` field, which is also kept in the record in case the response is evicted.
  var location: String? {
    fields.withUnsafeReadableBytes { bytes in
      var rest = bytes[...]
      while let end = rest.firstIndex(of: ASCII.lineFeed) {
        let line = rest[..<end]
        rest = rest[(end + 1)...]
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
