import Dispatch
import Glibc
import Logging
import Platform
import Synchronization
import Testing

@testable import Telemetry

/// The log sink.
struct LogSinkTests {
  /// The two ends of a pipe.
  private static func pipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [0, 0]
    try #require(Glibc.pipe(&ends) == 0)
    return (ends[0], ends[1])
  }

  /// A pause that no test outlasts, in milliseconds.
  private static let endless = 3_600_000

  /// Reads until this number of lines has arrived, or none has for 20 s.
  private static func awaitLines(_ count: Int, from descriptor: Int32) -> [Substring] {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while all.count(where: { $0 == UInt8(ascii: "\n") }) < count {
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, 20_000) == 1 else { break }
      let length = read(descriptor, &buffer, buffer.count)
      all += buffer[..<max(length, 0)]
    }
    return String(decoding: all, as: UTF8.self).split(separator: "\n")
  }

  private static func readAll(_ descriptor: Int32) -> String {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while case let count = read(descriptor, &buffer, buffer.count), count > 0 { all += buffer[..<count] }
    return String(decoding: all, as: UTF8.self)
  }

  @Test func `writes whole lines in their order, all of them by the flush`() throws {
    let ends = try Self.pipe()
    let sink = LogSink(descriptor: ends.write)
    for index in 0..<100 { sink.write(Array("line \(index)\n".utf8)) }
    #expect(sink.flush(within: 20))
    close(ends.write)
    let lines = Self.readAll(ends.read).split(separator: "\n")
    #expect(lines == (0..<100).map { "line \($0)" })
    close(ends.read)
  }

  @Test func `an entry alone is written after the pause`() throws {
    let ends = try Self.pipe()
    let sink = LogSink(descriptor: ends.write)
    sink.write(Array("alone\n".utf8))
    #expect(Self.awaitLines(1, from: ends.read) == ["alone"])
    #expect(sink.batches == 1)
  }

  @Test func `entries that follow one another wait for each other, and a flush ends their wait`() throws {
    let ends = try Self.pipe()
    let sink = LogSink(descriptor: ends.write, pause: Self.endless)
    for index in 0..<100 { sink.write(Array("line \(index)\n".utf8)) }
    #expect(sink.flush(within: 20))
    #expect(sink.batches == 1)
    #expect(Self.awaitLines(100, from: ends.read) == (0..<100).map { "line \($0)" })
  }

  @Test func `entries are written once there is much of them`() throws {
    let ends = try Self.pipe()
    let sink = LogSink(descriptor: ends.write, pause: Self.endless)
    let line = String(repeating: "x", count: 1023)
    for _ in 0..<LogSink.batchLength / 1024 { sink.write(Array("\(line)\n".utf8)) }
    #expect(Self.awaitLines(32, from: ends.read) == Array(repeating: line[...], count: 32))
    #expect(sink.batches == 1)
  }

  @Test(arguments: [Logger.Level.notice, .warning, .error, .critical])
  func `a warning is written at once, with the entries before it`(level: Logger.Level) throws {
    let ends = try Self.pipe()
    let sink = LogSink(descriptor: ends.write, pause: Self.endless)
    let logger = Logger(label: "semel") {
      StructuredLogHandler(label: $0, threshold: LogThreshold(.trace), format: .text, sink: sink)
    }
    logger.info("first")
    logger.log(level: level, "second")
    let lines = Self.awaitLines(2, from: ends.read)
    #expect(lines.count == 2 && lines[0].contains("first") && lines[1].contains("second"))
    #expect(sink.batches == 1)
  }

  /// The budget of the access log: a request costs no write of its own.
  @Test func `the entries of a thousand requests take a write for each 32 KiB`() throws {
    let ends = try Self.pipe()
    let sink = LogSink(descriptor: ends.write, pause: Self.endless)
    let log = AccessLog(sink: sink, format: .json, isEnabled: true)
    let reader = ReaderThread(descriptor: ends.read)
    var line = LogLine(format: .json)
    for _ in 0..<1000 {
      var entry = AccessLogEntry()
      entry.outcome = .executed
      entry.route = "create-order"
      #expect(!log.write(entry, now: 1, in: &line))
    }
    #expect(sink.flush(within: 20))
    close(ends.write)
    let text = reader.join()
    #expect(text.split(separator: "\n").count == 1000)
    #expect(sink.batches <= text.utf8.count / LogSink.batchLength + 1)
    close(ends.read)
  }

  @Test(arguments: [
    (LogFormat.json, #","level":"error","message":"log lines dropped","count":"#),
    (.text, #" level="error" message="log lines dropped" count="#),
  ])
  func `drops lines that a slow reader has no room for, and reports their number`(
    format: LogFormat, entry: String
  )
    throws
  {
    let ends = try Self.pipe()
    let sink = LogSink(descriptor: ends.write, capacity: 1 << 20, format: format)
    // More than the pipe (64 KiB) and the sink together hold, written while nobody reads.
    let line = Array((String(repeating: "x", count: 1023) + "\n").utf8)
    for _ in 0..<3000 { sink.write(line) }
    let reader = ReaderThread(descriptor: ends.read)
    sink.write(Array("last\n".utf8))
    #expect(sink.flush(within: 20))
    close(ends.write)
    let lines = reader.join().split(separator: "\n")
    let reports = lines.filter { $0.contains(entry) }
    let counts = reports.compactMap { report in
      report.split(separator: entry).last.flatMap { Int($0.prefix { $0.isNumber }) }
    }
    #expect(sink.dropped > 0)
    #expect(counts.reduce(0, +) == sink.dropped)
    #expect(lines.count - reports.count == 3001 - sink.dropped)
    close(ends.read)
  }

  @Test func `sleeps while a pipe that does not block is full, and goes on when it is read`() throws {
    let ends = try Self.pipe()
    #expect(fcntl(ends.write, F_SETFL, O_NONBLOCK) == 0)
    let sink = LogSink(descriptor: ends.write)
    // Three times what the pipe holds.
    let line = Array((String(repeating: "x", count: 1023) + "\n").utf8)
    for _ in 0..<192 { sink.write(line) }
    #expect(!sink.flush(within: 1))
    // One that spins comes round a million times.
    #expect((1...3).contains(sink.sleeps))
    let reader = ReaderThread(descriptor: ends.read)
    #expect(sink.flush(within: 20))
    #expect(sink.dropped == 0)
    close(ends.write)
    #expect(reader.join().utf8.count == 192 * 1024)
    close(ends.read)
  }

  @Test(arguments: [false, true])
  func `counts the lines that the descriptor refuses, and not its own`(oneByOne: Bool) throws {
    signal(SIGPIPE, SIG_IGN)
    let ends = try Self.pipe()
    close(ends.read)
    let sink = LogSink(descriptor: ends.write)
    for _ in 0..<3 {
      sink.write(Array("line\n".utf8))
      if oneByOne { sink.flush(within: 20) }
    }
    #expect(sink.flush(within: 20))
    #expect(sink.dropped == 3)
    close(ends.write)
  }
}

/// Reads a descriptor to its end on a thread of its own.
private final class ReaderThread: Sendable {
  private let bytes = Mutex<[UInt8]>([])
  private let end = DispatchSemaphore(value: 0)

  init(descriptor: Int32) {
    startNeededThread { [self] in
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while case let count = read(descriptor, &buffer, buffer.count), count > 0 {
        bytes.withLock { $0 += buffer[..<count] }
      }
      end.signal()
    }
  }

  func join() -> String {
    end.wait()
    return bytes.withLock { String(decoding: $0, as: UTF8.self) }
  }
}
