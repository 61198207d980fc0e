import Foundation
import Idempotency
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

  @Test func `writes ids as their text, and numbers of any size and sign`() throws {
    let id = RecordID(try #require(Digest256(0..<32)))
    let trace = TraceContext(traceHigh: 0xA1, traceLow: .max, span: 1, isSampled: true)
    let line = Self.line(.json) {
      $0.add("record", id)
      $0.add("trace_id", traceOf: trace)
      for number in [0, 9, 10, .max, -1, .min] { $0.add("n", number) }
      for time in [0, 999, 1000, .max] as [Int64] { $0.add("ms", microseconds: time) }
    }
    let numbers = #""n":0,"n":9,"n":10,"n":9223372036854775807,"n":-1,"n":-9223372036854775808"#
    let times = #""ms":0.000,"ms":0.999,"ms":1.000,"ms":9223372036854775.807"#
    #expect(
      line == "{\"record\":\"\(id.text)\",\"trace_id\":\"\(trace.traceText)\",\(numbers),\(times)}\n")
  }

  @Test func `has each character of a value as its reader of JSON gets it`() throws {
    for character in (0..<0x250 as Range<UInt32>).compactMap(Unicode.Scalar.init).map(Character.init) {
      for text in ["\(character)", "before\(character)", "\(character)after"] {
        let line = Self.line(.json) { $0.add("text", text) }
        let read = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String]
        #expect(read == ["text": text])
        #expect(line.unicodeScalars.dropLast().allSatisfy { $0.value >= 0x20 && $0.value != 0x7F })
      }
    }
  }

  @Test(arguments: LogFormat.allCases)
  func `is begun anew in the memory of the last`(format: LogFormat) {
    var line = LogLine(format: .json)
    line.add("first", String(repeating: "x", count: 2000))
    _ = line.end()
    let memory = line.bytes.withUnsafeBytes(\.baseAddress)
    line.restart(as: format)
    line.add("second", 2)
    #expect(line.end() == Array((format == .json ? "{\"second\":2}\n" : "second=2\n").utf8))
    #expect(line.bytes.withUnsafeBytes(\.baseAddress) == memory)
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
      (951_782_399_999, "2000-02-28T23:59:59.999Z"), (951_868_799_000, "2000-02-29T23:59:59.000Z"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (.max, "9999-12-31T23:59:59.999Z"),
      (-1, "1970-01-01T00:00:00.000Z"),
    ] as [(Int64, String)])
  func `is RFC 3339 in UTC with milliseconds`(milliseconds: Int64, text: String) {
    #expect(Timestamp.text(milliseconds: milliseconds) == text)
  }
}
