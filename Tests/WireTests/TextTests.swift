import Testing
import Wire

/// Hexadecimal, JSON strings and addresses as text.
struct TextTests {
  @Test(arguments: [
    ("plain", #""plain""#), ("", #""""#), ("a\"b\\c", #""a\"b\\c""#),
    ("\n\t\u{0}\u{1F}", #""\u000a\u0009\u0000\u001f""#),
    ("\u{7F}", #""\u007f""#), ("é\u{2028}€", "\"é\u{2028}€\""),
  ])
  func `a JSON string escapes quotes, backslashes and controls`(text: String, expected: String) {
    #expect(text.jsonString == expected)
  }

  @Test(
    arguments: [
      (0, "0000000000000000"), (0xAB, "00000000000000ab"), (.max, "ffffffffffffffff"),
      (0x0123_4567_89AB_CDEF, "0123456789abcdef"), (0xFEDC_BA98_7654_3210, "fedcba9876543210"),
    ] as [(UInt64, String)])
  func `a word has sixteen hexadecimal digits`(word: UInt64, expected: String) {
    #expect(word.hexText == expected)
  }

  @Test func `each byte has its two hexadecimal digits, in a word of 32 bits as well`() {
    for byte in UInt8.min ... .max {
      let expected = (byte < 16 ? "0" : "") + String(byte, radix: 16)
      #expect(byte.hexText == expected)
      #expect((UInt32(byte) << 24 | 0x90AF).hexText == expected + "0090af")
    }
  }

  @Test(
    arguments: [
      (.tcp(host: "127.0.0.1", port: 8080), "127.0.0.1:8080"), (.tcp(host: "::1", port: 1), "[::1]:1"),
      (.tcp(host: "orders.example", port: 80), "orders.example:80"),
      (.unix(path: "/run/x.sock"), "unix:/run/x.sock"),
    ] as [(ServerAddress, String)])
  func `an address reads as in the configuration`(address: ServerAddress, expected: String) {
    #expect(address.description == expected)
  }
}
