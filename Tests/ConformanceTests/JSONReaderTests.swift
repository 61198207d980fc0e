import Conformance
import Testing

/// Documents that are JSON by RFC 8259, and those that are not.
struct JSONReaderTests {
  @Test(arguments: ["0", "-0", "10", "1.5", "-1.25e+10", "2E-3", "1e5"])
  func `numbers are kept as they are written`(text: String) {
    #expect(JSONValue(text.utf8) == .number(text))
  }

  @Test(arguments: ["+1", "01", "1.", ".5", "-", "1e", "1e+", "0x1", "1 2", "--1", "NaN", "inf"])
  func `what only looks like a number is no JSON`(text: String) {
    #expect(JSONValue(text.utf8) == nil)
  }

  @Test(arguments: [
    (#""\ud83d\ude00""#, "\u{1F600}"), (#""\u00e9""#, "\u{E9}"), (#""\ud83dx""#, "\u{FFFD}x"),
    (#""\ud83d\n1234""#, "\u{FFFD}\n1234"), (#""\ud83d\u0041""#, "\u{FFFD}A"), (#""\ude00""#, "\u{FFFD}"),
  ])
  func `escapes are read by pairs of surrogates`(text: String, value: String) {
    #expect(JSONValue(text.utf8) == .string(value))
  }

  @Test(arguments: [#""\u+123""#, #""\u12""#, #""\x""#, "\"\t\"", #""a"#])
  func `what only looks like a string is no JSON`(text: String) {
    #expect(JSONValue(text.utf8) == nil)
  }

  @Test func `a string of bytes that are no UTF-8 is no JSON`() {
    #expect(JSONValue([0x22, 0xC3, 0x28, 0x22]) == nil)
    #expect(JSONValue([0x22, 0xC3, 0xA9, 0x22]) == .string("\u{E9}"))
  }
}
