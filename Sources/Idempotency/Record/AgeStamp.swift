import NIOCore
import Wire

/// The age that a recorded response had when it came (RFC 9111, section 5.1), to which a replay adds its own.
///
/// It is the first line of a record's fields, in a form of fixed length, so that a replay without one costs a comparison.
/// Earlier versions leave it out like any other `Age`, and records without it stay valid.
public enum AgeStamp {
  private static let name: StaticString = "Age: "
  private static let digits = 10
  private static let length = name.utf8CodeUnitCount + digits + 2
  /// The longest age that is noted, in seconds: the number that RFC 9111 gives for one that is too large.
  private static let longest = 1 << 31

  /// Writes the stamp, unless the response is new. Call it before any other field is written.
  ///
  /// - Parameter age: The age in seconds.
  public static func put(_ age: Int, into fields: inout ByteBuffer) {
    invariant(fields.readableBytes == 0, "an age is noted behind other fields")
    guard age > 0 else { return }
    let text = String(min(age, longest))
    fields.writeLiteral(name)
    fields.writeString(String(repeating: "0", count: digits - text.utf8.count) + text)
    fields.writeLiteral("\r\n")
  }

  /// Returns the age of a response, in seconds, and the response without the stamp; the response itself with 0 if it has
  /// none.
  public static func take(from response: RecordedResponse) -> (age: Int, response: RecordedResponse) {
    guard let age = age(of: response.fields) else { return (0, response) }
    return (
      age,
      RecordedResponse(
        status: response.status, fields: rest(of: response.fields), body: response.body,
        trailers: response.trailers)
    )
  }

  /// The fields without those that describe one moment, but with the stamp.
  static func keeping(_ fields: ByteBuffer) -> ByteBuffer {
    guard let age = age(of: fields) else { return fields.fieldLines(without: .momentary) }
    let (own, rest) = (rest(of: fields), rest(of: fields).fieldLines(without: .momentary))
    guard rest.readableBytes < own.readableBytes else { return fields }
    var kept = ByteBufferAllocator().buffer(capacity: length + rest.readableBytes)
    put(age, into: &kept)
    kept.writeImmutableBuffer(rest)
    return kept
  }

  /// The age in the stamp; `nil` if there is none.
  private static func age(of fields: ByteBuffer) -> Int? {
    guard fields.readableBytes >= length else { return nil }
    return fields.withUnsafeReadableBytes { bytes in
      let start = name.utf8CodeUnitCount
      guard
        UnsafeRawBufferPointer(rebasing: bytes[..<start]).elementsEqual(
          UnsafeRawBufferPointer(start: name.utf8Start, count: start)),
        bytes[start + digits] == ASCII.carriageReturn, bytes[start + digits + 1] == ASCII.lineFeed
      else { return nil }
      return ASCII.decimal(UnsafeRawBufferPointer(rebasing: bytes[start..<start + digits]))
    }
  }

  private static func rest(of fields: ByteBuffer) -> ByteBuffer {
    fields.getSlice(at: fields.readerIndex + length, length: fields.readableBytes - length) ?? ByteBuffer()
  }
}
