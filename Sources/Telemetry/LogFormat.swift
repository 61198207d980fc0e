import Wire

/// The format of log entries: one JSON object, or `name=value` pairs, per line.
public enum LogFormat: String, Sendable, CaseIterable { case json, text }

/// A log entry under construction.
///
/// Members keep their order and are escaped, so that data from a client cannot forge an entry.
public struct LogLine {
  /// The entry so far.
  public private(set) var bytes: [UInt8] = []
  private let format: LogFormat

  /// Begins an entry. `capacity` is the number of bytes that are reserved for it.
  public init(format: LogFormat, capacity: Int = 320) {
    self.format = format
    bytes.reserveCapacity(capacity)
    if format == .json { bytes.append(UInt8(ascii: "{")) }
  }

  /// Adds a member whose value is text.
  public mutating func add(_ name: StaticString, _ value: some StringProtocol) {
    begin(name)
    bytes.appendJSONString(value)
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

  private mutating func begin(named name: String) {
    separate()
    if format == .json { bytes.append(UInt8(ascii: "\"")) }
    bytes.appendEscaped(name.utf8)
    if format == .json { bytes.append(UInt8(ascii: "\"")) }
    bytes.append(format == .json ? UInt8(ascii: ":") : UInt8(ascii: "="))
  }

  /// Adds a member whose value is a number.
  public mutating func add(_ name: StaticString, _ value: Int) {
    begin(name)
    bytes.append(contentsOf: String(value).utf8)
  }

  /// Adds a duration, given in microseconds, as milliseconds with three decimals.
  public mutating func add(_ name: StaticString, microseconds: Int64) {
    begin(name)
    bytes.append(contentsOf: String(microseconds / 1000).utf8)
    bytes.append(UInt8(ascii: "."))
    let rest = String(microseconds % 1000)
    for _ in rest.utf8.count..<3 { bytes.append(UInt8(ascii: "0")) }
    bytes.append(contentsOf: rest.utf8)
  }

  /// Returns the finished entry, which ends in a line feed.
  public consuming func end() -> [UInt8] {
    if format == .json { bytes.append(UInt8(ascii: "}")) }
    bytes.append(UInt8(ascii: "\n"))
    return bytes
  }

  private mutating func begin(_ name: StaticString) {
    separate()
    if format == .json { bytes.append(UInt8(ascii: "\"")) }
    bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    if format == .json {
      bytes.append(UInt8(ascii: "\""))
      bytes.append(UInt8(ascii: ":"))
    } else {
      bytes.append(UInt8(ascii: "="))
    }
  }

  private mutating func separate() {
    switch format {
    case .json: if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
    case .text: if !bytes.isEmpty { bytes.append(UInt8(ascii: " ")) }
    }
  }
}
