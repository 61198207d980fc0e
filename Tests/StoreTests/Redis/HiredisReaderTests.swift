import Testing

@testable import Store

/// Replies as they come from the wire.
struct HiredisReaderTests {
  /// The replies in the text, until more is needed.
  private static func replies(_ text: String) throws(RedisProtocolError) -> [RedisValue] {
    var reader = HiredisReader()
    Array(text.utf8).withUnsafeBytes { reader.feed($0) }
    var values: [RedisValue] = []
    while let reply = try reader.next() { values.append(reply.value) }
    return values
  }

  @Test func `arrays are read with all their members`() throws {
    let expected = RedisValue.array([.integer(1), .array([.text("a"), .null]), .array([])])
    #expect(try Self.replies("*3\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n*0\r\n") == [expected])
    #expect(try Self.replies("*1048576\r\n:1\r\n") == [])
  }

  @Test(arguments: ["*1048577\r\n", "*2\r\n:1\r\n*2147483647\r\n"])
  func `an array that announces more members than there are takes no memory`(_ text: String) {
    #expect(throws: RedisProtocolError.self) { try Self.replies(text) }
  }
}
