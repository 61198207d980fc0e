import NIOCore

/// The reading of a path.
public enum PathReading: Sendable {
  /// In its normal form. A path that two readers may take differently has none, and is refused.
  case normal
  /// In that form, but for encoded slashes: each is a character of its segment, and stays as `%2F`. A path is refused in
  /// which that is not all that is open.
  case keepingSlashes
  /// As it was received, whatever it has.
  case asReceived
}

/// The parts of a request's target. The path is in the single form that is matched and identified.
public struct RequestTarget: Sendable {
  /// The client's spelling of the path. Few have one of their own, and all others are copied as a word.
  private indirect enum Spelling {
    case normal
    case own(ByteBuffer)
  }

  public let form: TargetForm
  /// The path without dot segments, with unreserved characters decoded and percent-encoding in upper case. It begins
  /// with `/`, or is `*`, or is empty for CONNECT. It is a slice of the head if it arrived in this form.
  public let path: ByteBuffer
  private let spelling: Spelling
  /// The raw query without its `?`; `nil` if there is none.
  public let query: ByteBuffer?
  /// The `host[:port]` of a target in absolute or authority form, as received. It overrides `Host`.
  public let authority: ByteBuffer?

  /// The path as it goes to the backend: in the client's own spelling, unless its segments differ from those of `path`.
  public var forwarded: ByteBuffer {
    if case .own(let own) = spelling { own } else { path }
  }

  /// Whether an encoded slash is a character of a segment, which it is in no path's normal form.
  public var hasEncodedSlash: Bool {
    path.withUnsafeReadableBytes { bytes in
      bytes.indices.dropLast(2).contains {
        bytes[$0] == 0x25 && bytes[$0 + 1] == 0x32 && bytes[$0 + 2] == 0x46
      }
    }
  }

  /// Splits the target of a request's head into its parts.
  public init(_ head: borrowing MessageHead, reading: PathReading = .normal) throws(WireError) {
    let target = head.target
    let all = head.bytes
    let (form, pathStart, queryMark, path) = try all.withUnsafeReadableBytes { bytes throws(WireError) in
      try Self.split(
        UnsafeRawBufferPointer(rebasing: bytes[target]), method: head.method, reading: reading)
    }
    self.form = form
    let pathEnd = queryMark ?? target.count
    let slice = { (from: Int, to: Int) in all.slice(target.lowerBound + from..<target.lowerBound + to) }
    query = queryMark.map { slice($0 + 1, target.count) }
    switch form {
    case .origin, .asterisk:
      authority = nil
    case .absolute(let range):
      authority = slice(range.lowerBound, range.upperBound)
    case .authority:
      authority = slice(0, target.count)
    }
    if form == .authority {
      self.path = ByteBuffer()
    } else if case .changed(let changed, let keepsSegments) = path {
      self.path = changed
      spelling = keepsSegments ? .own(slice(pathStart, pathEnd)) : .normal
      return
    } else if pathStart == pathEnd {
      self.path = Self.emptyPath(of: head.method, hasQuery: queryMark != nil)
    } else {
      self.path = slice(pathStart, pathEnd)
    }
    spelling = .normal
  }

  /// The meaning of an empty path: `/` (RFC 9112, section 3.2.1), or `*` for an OPTIONS request about the whole server
  /// (section 3.2.4).
  private static func emptyPath(of method: MessageHead.Method, hasQuery: Bool) -> ByteBuffer {
    ByteBuffer(staticString: method == .options && !hasQuery ? "*" : "/")
  }

  /// The form of a target, the start of its path, the place of its `?`, and the form of its path.
  private static func split(
    _ bytes: UnsafeRawBufferPointer, method: MessageHead.Method, reading: PathReading
  ) throws(WireError) -> (TargetForm, Int, Int?, PathForm) {
    let form = try TargetForm(bytes, method: method)
    var start = 0
    if case .absolute(let authority) = form { start = authority.upperBound }
    let mark = queryMark(bytes, from: start)
    guard form != .authority, form != .asterisk else { return (form, start, mark, .normal) }
    let path = UnsafeRawBufferPointer(rebasing: bytes[start..<(mark ?? bytes.count)])
    return switch reading {
    case .normal: (form, start, mark, try PathForm(path))
    case .keepingSlashes: (form, start, mark, try PathForm(path, keepsSlashes: true))
    case .asReceived: (form, start, mark, .normal)
    }
  }

  private static func queryMark(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    ASCII.index(of: 0x3F, in: bytes, start..<bytes.count)
  }
}

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
