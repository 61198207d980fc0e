import Idempotency
import NIOCore
import Testing

struct AgeStampTests {
  private static func stamped(_ age: Int, _ lines: String = "A: b\r\n") -> ByteBuffer {
    var fields = ByteBuffer()
    AgeStamp.put(age, into: &fields)
    fields.writeString(lines)
    return fields
  }

  private static func response(_ fields: ByteBuffer) -> RecordedResponse {
    RecordedResponse(status: 200, fields: fields, body: ByteBuffer(string: "body"))
  }

  @Test(arguments: [1, 7, 86_400, Int(Int32.max)])
  func `a stamp is taken off again, and tells the age`(age: Int) {
    let taken = AgeStamp.take(from: Self.response(Self.stamped(age)))
    #expect(taken.age == age)
    #expect(taken.response == Self.response(ByteBuffer(string: "A: b\r\n")))
  }

  @Test func `a new response has none, and one that is too large is the largest`() {
    #expect(Self.stamped(0) == ByteBuffer(string: "A: b\r\n"))
    #expect(AgeStamp.take(from: Self.response(Self.stamped(.max))).age == 1 << 31)
  }

  @Test(arguments: [
    "", "A: b\r\n", "Age: 7\r\nA: b\r\n", "Age: 12345678901\r\n", "Age: 00000000a7\r\nA: b\r\n",
  ])
  func `what is no stamp stays as it is`(lines: String) {
    let response = Self.response(ByteBuffer(string: lines))
    let taken = AgeStamp.take(from: response)
    #expect(taken.age == 0 && taken.response == response)
  }

  @Test func `a store gives the stamp back, and no other field of one moment`() throws {
    let lines = "A: b\r\nage: 9\r\nServer-Timing: x\r\n"
    var bytes = ByteBuffer(string: "head")
    bytes.writeImmutableBuffer(Self.stamped(12, lines))
    bytes.moveReaderIndex(forwardBy: 4)
    let stored = try #require(
      RecordedResponse(stored: 200, fields: bytes, body: ByteBuffer(), trailers: ByteBuffer()))
    let taken = AgeStamp.take(from: stored)
    #expect(taken.age == 12)
    #expect(String(buffer: taken.response.fields) == "A: b\r\n")
    let untouched = Self.stamped(3)
    #expect(
      RecordedResponse(stored: 200, fields: untouched, body: ByteBuffer(), trailers: ByteBuffer())?.fields
        == untouched)
  }
}
