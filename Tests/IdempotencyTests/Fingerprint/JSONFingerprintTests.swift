import Idempotency
import TestSupport
import Testing

/// JSON bodies: what is the same value, what is not, and what counts as bytes.
struct JSONFingerprintTests {
  private func digest(_ body: String, _ recipe: Recipe = Recipe()) -> Digest256 {
    Request("application/json", body).fingerprint(recipe).digest
  }

  @Test(arguments: [
    (#"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#),
    (#"{"a":1}"#, " \t\r\n{ \"a\" \r\n:\t1 } \n"),
    (#"[1,2]"#, "[ 1 ,\t2 ]"),
    (#"{}"#, "{ }"),
    (#"[]"#, "[\n]"),
    (#""A""#, #""\u0041""#),
    (#"{"A":"/"}"#, #"{"\u0041":"\/"}"#),
    (#""ä""#, #""\u00e4""#),
    (#""ä""#, #""\u00E4""#),
    (#""😀""#, #""\ud83d\uDE00""#),
    (#""日""#, #""\u65e5""#),
    (#""\n\r\t\b\f\"\\""#, #""\u000a\u000D\u0009\u0008\u000c\u0022\u005c""#),
    (#"{"b":{"d":[{"f":1,"e":2}],"c":3},"a":4}"#, #"{"a":4,"b":{"c":3,"d":[{"e":2,"f":1}]}}"#),
    (#"{"":1,"a":2}"#, #"{"a":2,"":1}"#),
    (#"{"a":1,"ab":2,"b":3}"#, #"{"b":3,"ab":2,"a":1}"#),
    (#"{"ä":1,"z":2,"\u0061":3}"#, #"{"a":3,"z":2,"\u00e4":1}"#),
    (#"{"\ud800":1,"a":2}"#, #"{"a":2,"\uD800":1}"#),
    (#"[{"a":{}},{"b":[{}]},{"c":1}]"#, #"[ {"a":{} } , {"b":[ {} ]}, {"c":1}]"#),
  ])
  func `spellings of one value are equal`(left: String, right: String) {
    #expect(digest(left) == digest(right))
    #expect(!Request("application/json", left).isFingerprintedRaw)
  }

  @Test(arguments: [
    (#"{"a":1}"#, #"{"a":2}"#),
    (#"{"a":1}"#, #"{"b":1}"#),
    (#"{"a":1}"#, #"{"a":"1"}"#),
    ("1", "-1"),
    ("1.5", "15"),
    ("0.1", "0.10000000000000001"),
    ("9007199254740992.0", "9007199254740993.0"),
    ("1e400", "1e401"),
    ("1e-400", "0"),
    ("[1,0]", "[10]"),
    ("1e99999999999999999999", "1e99999999999999999998"),
    ("123456789012345678901", "123456789012345678902"),
    ("[1,2]", "[2,1]"),
    ("[1,2]", "[12]"),
    ("[[1],2]", "[[1,2]]"),
    ("[[]]", "[[],[]]"),
    ("[]", "{}"),
    ("[1]", "1"),
    ("null", #""null""#),
    ("null", "false"),
    (#"{"a":{}}"#, #"{"a":[]}"#),
    (#"{"a":null}"#, "{}"),
    (#"{"a":"b","c":"d"}"#, #"{"a":"d","c":"b"}"#),
    (#"{"a":"b,c"}"#, #"{"a":"b","c":""}"#),
    (#"{"a":{"b":1},"c":2}"#, #"{"a":{"b":1,"c":2}}"#),
    (#"["a","b"]"#, #"["a\",\"b"]"#),
    (#"["a"]"#, #"["a",""]"#),
    (#""\ud800""#, #""\ud801""#),
    (#""\ud800""#, #""\udc00""#),
    (#""\udc00\ud800""#, #""\ud800\udc00""#),
    (#""\ud800""#, #""\ufffd""#),
    (#""\ud800""#, #""\\ud800""#),
    (#""\ud83d\ud83d\ude00""#, #""\ud83d\ude00""#),
    (#""\u0000""#, #""""#),
    (#""ä""#, #""a\u0308""#),
    (#""a""#, #""A""#),
    (#"{"a":[{"x":1},{"y":2}]}"#, #"{"a":[{"y":2},{"x":1}]}"#),
  ])
  func `different values differ`(left: String, right: String) {
    #expect(digest(left) != digest(right))
    #expect(!Request("application/json", left).isFingerprintedRaw)
    #expect(!Request("application/json", right).isFingerprintedRaw)
  }

  @Test(arguments: [
    ["1", "1.0", "1e0", "1.000E+0", "10e-1", "0.1e1", "100e-2", "0.0001e4", "1e-00"],
    ["0", "-0", "0.0", "-0.00", "0e9", "0E-9", "-0e99999999999999999999"],
    ["-120", "-1.2e2", "-12E1", "-120.0", "-0.00120e+5", "-12000e-2"],
    ["12345678901234567890.5", "1234567890123456789.05e1", "123456789012345678905e-1"],
    ["1e400", "10e399", "0.1e401"],
    ["105", "1.05e2", "10.5e1", "0.000105e6"],
    ["1005.5", "1005.50", "10055e-1", "10.055e2"],
    ["1e999999999999999999", "1.0e999999999999999999", "1e+0999999999999999999"],
  ])
  func `numbers of one exact value are equal, and to the first recipe are not`(spellings: [String]) {
    let digests = spellings.map { digest("[\($0)]") }
    #expect(Set(digests).count == 1)
    #expect(Set(spellings.map { digest("[\($0)]", .one) }).count == spellings.count)
    let records = spellings.map { digest(#"{"a":\#($0)}"#) }
    #expect(Set(records).count == 1)
  }

  @Test(arguments: [
    "", " ", "{", "}", "[", "]", "{]", "[}", "nul", "nulll", "True", "tru", "'a'", "{a:1}", "{\"a\" 1}",
    "{\"a\":}", "{\"a\"}",
    "{\"a\":1,}", "{,}", "[1,]", "[,1]", "[1 2]", "{\"a\":1 \"b\":2}", "1 2", "[]]", "{} {}", "01", "-", "-a",
    "+1", "1.",
    ".5", "1.e1", "1e", "1e+", "0x1", "Infinity", "NaN", "\"", "\"a", "\"\\", "\"\\u", "\"\\u12", "\"\\u12\"",
    "\"\\u123g\"",
    "\"\\x\"", "\"a\nb\"", "\"\t\"", "\"\u{0}\"", "// a\n1", "1 // a", "\u{FEFF}{}", "{\"a\":1,\"a\":1}",
    "{\"a\":1,\"\\u0061\":2}", "{\"b\":{\"a\":1,\"c\":2,\"a\":3}}", "[{\"\":0,\"\":0}]", "\u{A0}1", "\u{C}1",
    "1\u{0}", "2e1.5",
    "{\"\\ud800\":1,\"\\uD800\":2}", "--1", "00", "-01",
  ])
  func `invalid JSON, or JSON with a repeated member, counts as bytes`(body: String) {
    #expect(Request("application/json", body).isFingerprintedRaw)
  }

  @Test(
    arguments: [
      [0xFF], [0xC3], [0xC3, 0x28], [0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xED, 0xA0, 0x80],
      [0xF4, 0x90, 0x80, 0x80],
      [0xF5, 0x80, 0x80, 0x80], [0x80], [0xF0, 0x9F, 0x98],
    ] as [[UInt8]])
  func `invalid UTF-8 counts as bytes`(bytes: [UInt8]) {
    #expect(Request("application/json", body: [0x22] + bytes + [0x22]).isFingerprintedRaw)
    #expect(Request("application/json", body: [0x22] + bytes).isFingerprintedRaw)
  }

  @Test(arguments: [
    "application/problem+json", "application/vnd.api+JSON", "text/json", "TEXT/JSON; a=b", "image/x+json ; a",
  ])
  func `every JSON media type is read as JSON`(type: String) {
    #expect(!Request(type, #"{"a":1}"#).isFingerprintedRaw)
  }

  @Test(arguments: [
    "text/plain", "application/jsonl", "application/json-seq", "+json", "json", "application/x+jsonx",
  ])
  func `other media types are bytes`(type: String) {
    #expect(Request(type, #"{"a":1}"#).isFingerprintedRaw)
  }

  @Test func `nesting is read to a depth of 128`() {
    func nested(_ depth: Int, _ open: String, _ close: String) -> Request {
      Request(
        "application/json",
        String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth))
    }
    for (open, close) in [("[", "]"), (#"{"a":"#, "}"), (#"[{"a":"#, "}]")] {
      let levels = open.count(where: { "[{".contains($0) })
      #expect(!nested(128 / levels, open, close).isFingerprintedRaw)
      #expect(nested(128 / levels + 1, open, close).isFingerprintedRaw)
      #expect(nested(100_000, open, close).isFingerprintedRaw)
    }
  }

  @Test func `many members and long names are sorted`() {
    var generator = SeededGenerator(seed: 7)
    let names = (0..<500).map { String(repeating: "n", count: $0 % 40) + "\($0)" }
    func body(_ names: [String]) -> String {
      "{" + names.map { "\"\($0)\":\"\($0)\"" }.joined(separator: ",") + "}"
    }
    let shuffled = digest(body(names.shuffled(using: &generator)))
    #expect(shuffled == digest(body(names)))
    #expect(shuffled != digest(body(Array(names.dropLast()))))
    #expect(Request("application/json", body(names + [names[3]])).isFingerprintedRaw)
  }
}
