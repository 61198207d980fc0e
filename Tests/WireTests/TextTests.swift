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
    ] as [(UInt64, String)])
  func `a word has sixteen hexadecimal digits`(word: UInt64, expected: String) {
    #expect(word.hexText == expected)
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
