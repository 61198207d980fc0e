import Idempotency
import Logging
import Platform
import Synchronization
import Wire

/// The format of log entries: one JSON object, or `name=value` pairs, per line.
public enum LogFormat: String, Sendable, CaseIterable { case json, text }

/// A log entry under construction. Members keep their order and are escaped, so that data from a client cannot forge
/// one. A member is one step of the array's, since each step costs as much as its bytes.
public struct LogLine {
  private static let usualLength = 512

  /// The entry so far.
  public private(set) var bytes: [UInt8] = []
  private var format: LogFormat

  /// Begins an entry.
  public init(format: LogFormat) {
    self.format = format
    restart(as: format)
  }

  /// Begins another entry in the memory of the last one.
  public mutating func restart(as format: LogFormat) {
    self.format = format
    bytes.removeAll(keepingCapacity: true)
    bytes.reserveCapacity(Self.usualLength)
    if format == .json { bytes.append(UInt8(ascii: "{")) }
  }

  /// Adds a member whose value is text.
  public mutating func add(_ name: StaticString, _ value: String) {
    var value = value
    value.withUTF8 { text in
      if text.isPlainInJSON {
        addQuoted(name, length: text.count) { place in
          if let start = text.baseAddress { place.copyMemory(from: start, byteCount: text.count) }
        }
      } else {
        add(name, longest: 0) { _ in 0 }
        bytes.append(UInt8(ascii: "\""))
        bytes.appendEscaped(text)
        bytes.append(UInt8(ascii: "\""))
      }
    }
  }

  /// Adds a member whose value is a number.
  public mutating func add(_ name: StaticString, _ value: Int) {
    guard value >= 0 else {
      add(name, longest: 0) { _ in 0 }
      return bytes.append(contentsOf: String(value).utf8)
    }
    add(name, longest: ASCII.maxDecimalLength) { ASCII.writeDecimal(value, to: $0) }
  }

  /// Adds a duration, given in microseconds, as milliseconds with three decimals.
  public mutating func add(_ name: StaticString, microseconds: Int64) {
    let (whole, rest) = Int(max(microseconds, 0)).quotientAndRemainder(dividingBy: 1000)
    add(name, longest: ASCII.maxDecimalLength + 4) { place in
      let end = place + ASCII.writeDecimal(whole, to: place)
      end.storeBytes(of: UInt8(ascii: "."), as: UInt8.self)
      end.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: rest / 100), toByteOffset: 1, as: UInt8.self)
      ASCII.writeTwoDigits(rest % 100, to: end + 2)
      return end + 4 - place
    }
  }

  /// Adds the present time as the member `time`.
  public mutating func addTime() {
    let now = WallClock.milliseconds()
    addQuoted("time", length: Timestamp.length) { Timestamp.write(milliseconds: now, to: $0) }
  }

  /// Adds a member whose value is a record's ID.
  public mutating func add(_ name: StaticString, _ id: RecordID) {
    addQuoted(name, length: Digest256.textLength) { place in
      id.digest.writeText(to: place.assumingMemoryBound(to: UInt8.self))
    }
  }

  /// Adds a member whose value is the ID of a trace.
  public mutating func add(_ name: StaticString, traceOf context: TraceContext) {
    addQuoted(name, length: 32) { place in
      context.traceHigh.writeHex(to: place)
      context.traceLow.writeHex(to: place + 16)
    }
  }

  /// Adds a member whose name is known only at run time.
  public mutating func add(named name: String, _ value: String) {
    begin(named: name)
    bytes.appendJSONString(value)
  }

  /// Adds a member whose name is known only at run time, and whose value is a number.
  public mutating func add(named name: String, _ value: Int) {
    begin(named: name)
    bytes.append(contentsOf: String(value).utf8)
  }

  /// Returns the finished entry, which ends in a line feed.
  public mutating func end() -> [UInt8] {
    if format == .json { bytes.append(UInt8(ascii: "}")) }
    bytes.append(UInt8(ascii: "\n"))
    return bytes
  }
}

extension LogLine {
  private var isFirst: Bool { bytes.count == (format == .json ? 1 : 0) }

  private mutating func addQuoted(
    _ name: StaticString, length: Int, _ writeText: (UnsafeMutableRawPointer) -> Void
  ) {
    add(name, longest: length + 2) { place in
      place.storeBytes(of: UInt8(ascii: "\""), as: UInt8.self)
      writeText(place + 1)
      place.storeBytes(of: UInt8(ascii: "\""), toByteOffset: length + 1, as: UInt8.self)
      return length + 2
    }
  }

  /// Adds a member, whose value is at most `longest` bytes and written by `writeValue`, which returns its length.
  @inline(__always)
  private mutating func add(
    _ name: StaticString, longest: Int, _ writeValue: (UnsafeMutableRawPointer) -> Int
  ) {
    let (format, isFirst) = (format, isFirst)
    // A separator, two quotes and a colon.
    bytes.append(addingCapacity: name.utf8CodeUnitCount + 4 + longest) { output in
      output.withUnsafeMutableBufferPointer { space, count in
        guard let start = UnsafeMutableRawPointer(space.baseAddress) else { return }
        let value = Self.writeName(name, of: format, isFirst: isFirst, to: start)
        let length = writeValue(value)
        invariant(length <= longest, "a log entry's value longer than the room for it")
        count = value + length - start
      }
    }
  }

  /// Writes a member's name and what is around it. Returns the place of its value.
  private static func writeName(
    _ name: StaticString, of format: LogFormat, isFirst: Bool, to start: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    var place = start
    func put(_ byte: UInt8) {
      place.storeBytes(of: byte, as: UInt8.self)
      place += 1
    }
    if !isFirst { put(format == .json ? UInt8(ascii: ",") : UInt8(ascii: " ")) }
    if format == .json { put(UInt8(ascii: "\"")) }
    place.copyMemory(from: name.utf8Start, byteCount: name.utf8CodeUnitCount)
    place += name.utf8CodeUnitCount
    if format == .json { put(UInt8(ascii: "\"")) }
    put(format == .json ? UInt8(ascii: ":") : UInt8(ascii: "="))
    return place
  }

  private mutating func begin(named name: String) {
    if !isFirst { bytes.append(format == .json ? UInt8(ascii: ",") : UInt8(ascii: " ")) }
    if format == .json { bytes.append(UInt8(ascii: "\"")) }
    bytes.appendEscaped(name.utf8)
    if format == .json { bytes.append(UInt8(ascii: "\"")) }
    bytes.append(format == .json ? UInt8(ascii: ":") : UInt8(ascii: "="))
  }
}

/// A `swift-log` handler that writes one structured entry per message, numbers for `.stringConvertible` metadata that
/// is an `Int`. Entries from `notice` on are written at once.
public struct StructuredLogHandler: LogHandler {
  public var metadata: Logger.Metadata = [:]
  /// The least severe level that is logged. A single logger can only be less verbose than the process.
  public var logLevel: Logger.Level {
    get { max(own, threshold.level) }
    set { own = newValue }
  }
  private var own = Logger.Level.trace
  private let threshold: LogThreshold
  private let label: String
  private let sink: LogSink
  private let format: LogFormat

  public init(label: String, threshold: LogThreshold, format: LogFormat, sink: LogSink) {
    self.label = label
    self.threshold = threshold
    self.format = format
    self.sink = sink
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    var line = LogLine(format: format)
    line.addTime()
    line.add("level", event.level.rawValue)
    line.add("logger", label)
    line.add("message", "\(event.message)")
    let all = metadata.merging(event.metadata ?? [:]) { $1 }
    for (name, value) in all.sorted(by: { $0.key < $1.key }) {
      if case .stringConvertible(let number as Int) = value {
        line.add(named: name, number)
      } else {
        line.add(named: name, "\(value)")
      }
    }
    sink.write(line.end(), isUrgent: event.level >= .notice)
  }
}

/// The least severe level that the process logs. All its loggers share it, so that a reload reaches every copy.
public final class LogThreshold: Sendable {
  private static let levels = Logger.Level.allCases

  private let index: Atomic<Int>

  public init(_ level: Logger.Level) { index = Atomic(Self.index(of: level)) }

  /// The threshold. Safe to read and set from any thread.
  public var level: Logger.Level {
    get { Self.levels[index.load(ordering: .relaxed)] }
    set { index.store(Self.index(of: newValue), ordering: .relaxed) }
  }

  private static func index(of level: Logger.Level) -> Int { levels.firstIndex(of: level) ?? 0 }
}
