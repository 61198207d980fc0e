import Telemetry
import Testing

/// A log line.
struct LogLineTests {
  private static func line(_ format: LogFormat, _ fill: (inout LogLine) -> Void) -> String {
    var line = LogLine(format: format)
    fill(&line)
    return String(decoding: line.end(), as: UTF8.self)
  }

  @Test func `is one JSON object with its members in order`() {
    let line = Self.line(.json) {
      $0.add("message", "request")
      $0.add("status", 201)
      $0.add("duration_ms", microseconds: 12_034)
    }
    #expect(line == "{\"message\":\"request\",\"status\":201,\"duration_ms\":12.034}\n")
  }

  @Test func `writes a number that is named at run time as a number`() {
    let line = Self.line(.json) {
      $0.add(named: "attempt", 2)
      $0.add(named: "key", "2")
    }
    #expect(line == "{\"attempt\":2,\"key\":\"2\"}\n")
  }

  @Test func `is pairs of names and values in text form`() {
    let line = Self.line(.text) {
      $0.add("message", "request")
      $0.add("status", 201)
      $0.add("duration_ms", microseconds: 7)
    }
    #expect(line == "message=\"request\" status=201 duration_ms=0.007\n")
  }

  @Test(arguments: [LogFormat.json, .text])
  func `cannot be forged by what a stranger sends`(format: LogFormat) {
    let line = Self.line(format) { $0.add("path", "a\"b\\c\nlevel=error\u{1B}[31m\u{0}\u{7F}é") }
    #expect(line.filter { $0 == "\n" }.count == 1)
    #expect(line.hasSuffix("\n"))
    #expect(line.contains(#"a\"b\\c\u000alevel=error\u001b[31m\u0000\u007fé"#))
  }
}

/// A time stamp.
struct TimeStampTests {
  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (1_769_847_330_042, "2026-01-31T08:15:30.042Z"),
      (951_782_399_999, "2000-02-28T23:59:59.999Z"),
    ] as [(Int64, String)])
  func `is RFC 3339 in UTC with milliseconds`(milliseconds: Int64, text: String) {
    #expect(Timestamp.text(milliseconds: milliseconds) == text)
  }
}
