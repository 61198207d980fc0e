import Glibc
import Testing

@testable import Telemetry

/// The entries about refused requests whose caller nobody knows.
struct RefusalPaceTests {
  @Test func `of each reason a hundred are written a second, and the others counted`() {
    var pace = RefusalPace()
    for reason in [RefusalReason.badRequest, .noRoute] {
      for _ in 0..<100 { #expect(pace.count(reason, now: 5) == .write) }
    }
    #expect(pace.takeLeftOut().isEmpty)
    // One number is due for all reasons together.
    #expect(pace.count(.noRoute, now: 6) == .leaveOut(isFirst: true))
    #expect(pace.count(.badRequest, now: 1_000_000_004) == .leaveOut(isFirst: false))
    #expect(pace.count(.badRequest, now: 1_000_000_004) == .leaveOut(isFirst: false))
    let leftOut = pace.takeLeftOut()
    #expect(leftOut.map(\.reason) == [.badRequest, .noRoute] && leftOut.map(\.count) == [2, 1])
    #expect(pace.takeLeftOut().isEmpty)
    #expect(pace.count(.noRoute, now: 7) == .leaveOut(isFirst: true))
    #expect(pace.count(.badRequest, now: 1_000_000_005) == .write)
    #expect(pace.takeLeftOut().map(\.count) == [1])
  }

  /// Writes 250 entries of refused requests, and returns the log.
  private static func log(caller: String?) throws -> (lines: [Substring], isDue: [Bool]) {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    let sink = LogSink(descriptor: ends[1])
    let log = AccessLog(sink: sink, format: .json, isEnabled: true)
    var isDue: [Bool] = []
    var line = LogLine(format: .json)
    for _ in 0..<250 {
      var entry = AccessLogEntry()
      entry.outcome = .refused
      entry.refusal = .keyMissing
      entry.callerDigest = caller
      isDue.append(log.write(entry, now: 1, in: &line))
    }
    log.writeLeftOut()
    #expect(sink.flush(within: 20))
    close(ends[1])
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    var text = ""
    while case let count = read(ends[0], &bytes, bytes.count), count > 0 {
      text += String(decoding: bytes[..<count], as: UTF8.self)
    }
    close(ends[0])
    return (text.split(separator: "\n"), isDue)
  }

  @Test func `the number of entries left out is an entry`() throws {
    let (lines, isDue) = try Self.log(caller: nil)
    #expect(lines.count == 101)
    #expect(
      lines.last?.hasSuffix(#""message":"refused requests left out","reason":"key_missing","count":150}"#)
        == true)
    #expect(isDue.count(where: { $0 }) == 1 && isDue[100])
  }

  @Test func `the requests of a known caller are all written`() throws {
    let (lines, isDue) = try Self.log(caller: "c")
    #expect(lines.count == 250 && !isDue.contains(true))
  }
}
