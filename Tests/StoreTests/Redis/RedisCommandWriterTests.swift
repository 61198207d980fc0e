import Idempotency
import NIOCore
import Testing

@testable import Store

/// Commands byte for byte.
struct RedisCommandWriterTests {
  private func written(_ body: (inout RedisCommandWriter) -> Void) -> String {
    var buffer = ByteBuffer()
    buffer.writeCommand(capacity: 4096, body)
    return String(buffer: buffer)
  }

  @Test(arguments: 0...30)
  func `a command that is longer than its estimate is written whole`(_ estimate: Int) {
    var buffer = ByteBuffer(string: "before ")
    buffer.writeCommand(capacity: estimate) {
      $0.literal("*2\r\n")
      $0.argument(String(repeating: "x", count: 2000))
      $0.argument { $0.text(String(repeating: "y", count: 120)) }
      $0.token(OwnerToken(high: 1, low: 2))
    }
    let (x, y) = (String(repeating: "x", count: 2000), String(repeating: "y", count: 120))
    #expect(
      String(buffer: buffer)
        == "before *2\r\n$2000\r\n\(x)\r\n$120\r\n\(y)\r\n00000000000000010000000000000002")
  }

  @Test(arguments: [0, 1, 9, 10, 99, 100, 999, 1000])
  func `an argument states its length, whatever that is`(_ length: Int) {
    let text = String(repeating: "x", count: length)
    #expect(
      written {
        $0.argument { $0.text(text) }
        $0.argument(text)
      } == "$\(length)\r\n\(text)\r\n$\(length)\r\n\(text)\r\n")
  }

  @Test(arguments: [
    0, 7, 10, 42, 99, 100, 101, 12_345, -1, 1_700_000_000_000, .max, .min, 999_999_999_999_999_999,
    1_000_000_000_000_000_000,
  ])
  func `a number is written as Swift does`(_ number: Int64) {
    #expect(written { $0.number(number) } == "\(number)")
  }

  @Test func `a token is 32 hexadecimal digits`() {
    #expect(
      written { $0.token(OwnerToken(high: 0x0123_4567_89AB_CDEF, low: 7)) }
        == "0123456789abcdef0000000000000007")
  }

  @Test func `plain words form a command`() {
    var buffer = ByteBuffer()
    buffer.writeCommand(["SUBSCRIBE", "é"])
    #expect(String(buffer: buffer) == "*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\né\r\n")
  }

  @Test func `the response of a record is in the record's slot`() throws {
    let id = RecordID(try #require(Digest256(repeatElement(0, count: 32))))
    let text = String(repeating: "A", count: 43)
    #expect(
      written { RedisKeys(namespace: "semel").write(id, to: &$0) }
        == "$51\r\nsemel:{\(text)}\r\n")
    #expect(RedisKeys(namespace: "semel").response(id, "r:ab") == "semel:{\(text)}:r:ab")
    #expect(RedisKeys(namespace: "semel").channel(id) == "semel:{\(text)}")
  }

  @Test func `unlimited spans are cut to Lua's exact range`() {
    #expect(
      written {
        $0.span(Milliseconds(.max))
        $0.literal(" ")
        $0.span(-5)
        $0.timeToLive(0)
        $0.timeToLive(Milliseconds(.max), Milliseconds(.max), 1)
      } == "10000000000000 0$1\r\n1\r\n$14\r\n20000000000001\r\n")
  }
}
