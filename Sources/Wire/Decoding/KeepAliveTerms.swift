/// The terms on which a server keeps its connection for further requests, as `Keep-Alive: timeout=5, max=100` states
/// them (RFC 2068, section 19.7.1.1).
public struct KeepAliveTerms: Equatable, Sendable {
  /// The time for which the server keeps the connection without a request, in seconds; `nil` if it is not stated.
  public var timeout: Int?
  /// The number of further requests that the server takes on the connection; `nil` if it is not stated.
  public var max: Int?

  public init(timeout: Int? = nil, max: Int? = nil) {
    self.timeout = timeout
    self.max = max
  }

  /// Reads the terms of a response. Parameters that are unknown or no number are skipped, and of two the smaller one
  /// counts.
  public init(of head: MessageHead) {
    self.init()
    head.readList(of: FieldNameSet(.keepAlive)) { element in
      read(element)
      return true
    }
  }

  private mutating func read(_ element: UnsafeRawBufferPointer) {
    guard let sign = ASCII.index(of: 0x3D, in: element, 0..<element.count) else { return }
    let name = UnsafeRawBufferPointer(rebasing: MessageHead.trimmed(element[..<sign]))
    let value = UnsafeRawBufferPointer(rebasing: MessageHead.trimmed(element[(sign + 1)...]))
    guard let number = ASCII.decimal(value) else { return }
    if ASCII.equalsIgnoringCase(name, "timeout") {
      timeout = Swift.min(timeout ?? number, number)
    } else if ASCII.equalsIgnoringCase(name, "max") {
      max = Swift.min(max ?? number, number)
    }
  }
}
