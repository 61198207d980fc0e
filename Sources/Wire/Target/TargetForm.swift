/// The four forms of a request target (RFC 9112, section 3.2), distinguished and checked against the method.
public enum TargetForm: Sendable, Equatable {
  /// `/path?query`.
  case origin
  /// `http://host/path?query`, with the range of the authority, whose end is the start of the path and query.
  case absolute(authority: Range<Int>)
  /// `host:port`, for CONNECT.
  case authority
  /// `*`, for OPTIONS.
  case asterisk

  /// Determines the form of a target.
  ///
  /// - Parameter bytes: The whole target.
  init(_ bytes: UnsafeRawBufferPointer, method: MessageHead.Method) throws(WireError) {
    if method == .connect {
      guard try Authority(bytes)?.port != nil else { throw .badTarget }
      self = .authority
    } else if bytes.first == 0x2F {
      self = .origin
    } else if bytes.count == 1, bytes[0] == 0x2A, method == .options {
      self = .asterisk
    } else {
      self = .absolute(authority: try Self.authority(in: bytes))
    }
  }

  private static func authority(in bytes: UnsafeRawBufferPointer) throws(WireError) -> Range<Int> {
    let start: Int
    if Self.begins(bytes, with: "http://") {
      start = 7
    } else if Self.begins(bytes, with: "https://") {
      start = 8
    } else {
      throw .badTarget
    }
    var end = start
    // The authority ends at the path or the query.
    while end < bytes.count, bytes[end] != 0x2F, bytes[end] != 0x3F { end += 1 }
    guard end > start else { throw .badTarget }
    guard try Authority(UnsafeRawBufferPointer(rebasing: bytes[start..<end])) != nil else { throw .badHost }
    return start..<end
  }

  private static func begins(_ bytes: UnsafeRawBufferPointer, with prefix: StaticString) -> Bool {
    let count = prefix.utf8CodeUnitCount
    guard bytes.count >= count else { return false }
    return ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: bytes[..<count]), prefix)
  }
}
