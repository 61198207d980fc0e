import NIOCore

/// A request's target taken apart, its path in the one form in which it is matched, identified and forwarded.
public struct RequestTarget: Sendable {
  public let form: TargetForm
  /// The path without dot segments, unreserved characters decoded, percent-encoding in upper case. It begins
  /// with `/`, or is `*`, or is empty for CONNECT. A slice of the head where it came that way.
  public let path: ByteBuffer
  /// The raw query without its `?`; `nil` where there is none.
  public let query: ByteBuffer?
  /// `host[:port]` of a target in absolute or authority form, as it came. It overrides `Host`.
  public let authority: ByteBuffer?

  /// Takes the target of a request's head apart.
  public init(_ head: MessageHead) throws(WireError) {
    let target = head.target
    let all = head.bytes
    let (form, pathStart, queryMark, path) = try all.withUnsafeReadableBytes {
      bytes throws(WireError) -> (TargetForm, Int, Int?, PathForm) in
      let bytes = UnsafeRawBufferPointer(rebasing: bytes[target])
      let form = try TargetForm(bytes, method: head.method)
      var start = 0
      if case .absolute(let authority) = form { start = authority.upperBound }
      let mark = Self.queryMark(bytes, from: start)
      guard form != .authority, form != .asterisk else { return (form, start, mark, .normal) }
      let path = UnsafeRawBufferPointer(rebasing: bytes[start..<(mark ?? bytes.count)])
      return (form, start, mark, try PathForm(path))
    }
    self.form = form
    let pathEnd = queryMark ?? target.count
    let slice = { (from: Int, to: Int) in head.slice(target.lowerBound + from..<target.lowerBound + to) }
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
    } else if case .changed(let changed) = path {
      self.path = changed
    } else if pathStart == pathEnd {
      // RFC 9112, sections 3.2.1 and 3.2.4: an empty path is "/", and "*" where OPTIONS asks about the whole
      // server.
      self.path = ByteBuffer(staticString: head.method == .options && queryMark == nil ? "*" : "/")
    } else {
      self.path = slice(pathStart, pathEnd)
    }
  }

  private static func queryMark(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    for at in start..<bytes.count where bytes[at] == 0x3F { return at }
    return nil
  }

  /// Lends the bytes of the path.
  public func withPath<T>(_ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
    try path.withUnsafeReadableBytes(body)
  }

  /// Lends the bytes of the query, none where there is none.
  public func withQuery<T>(_ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
    guard let query else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
    return try query.withUnsafeReadableBytes(body)
  }
}
