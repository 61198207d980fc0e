/// The head of a response, and the framing of its body.
public struct ResponseHead: Sendable {
  public enum Framing: Equatable, Sendable {
    /// There is no body, whatever the fields declare: a response to HEAD, a 2xx response to CONNECT, 1xx, 204 or 304.
    case none
    case length(Int)
    case chunked
    /// The body ends with the connection, so a truncated body cannot be detected.
    case untilClose
  }

  public var head: MessageHead
  public var framing: Framing
  /// Whether the connection persists for another request.
  public var keepAlive: Bool
  /// Whether every reader, and the backend itself, sees the same end of the response. Otherwise, what follows on the
  /// connection may still be a part of it.
  public var hasCertainEnd: Bool

  public init(head: MessageHead, framing: Framing, keepAlive: Bool, hasCertainEnd: Bool = true) {
    self.head = head
    self.framing = framing
    self.keepAlive = keepAlive
    self.hasCertainEnd = hasCertainEnd
  }

  /// Whether the final response is still to come: any 1xx except 101, which ends HTTP on the connection.
  public var isInterim: Bool { 100..<200 ~= head.status && head.status != 101 }
}

/// A parsed status line, `version SP status SP reason` (RFC 9112, section 4). Many servers omit the last space together
/// with the reason; that is accepted.
struct StatusLineParser {
  let start: MessageHead.StartLine
  let minorVersion: UInt8

  /// The status of a final response; `nil` for an interim one.
  var finalStatus: Int? {
    if case .status(let status, _) = start, status >= 200 { status } else { nil }
  }

  init(_ bytes: UnsafeRawBufferPointer, end: Int) throws(WireError) {
    guard end >= 12, bytes[8] == ASCII.space else { throw .badStatusLine }
    do throws(WireError) {
      minorVersion = try HTTPVersion.minor(bytes, 0, 8)
    } catch {
      throw .badStatusLine
    }
    let status = ASCII.decimal(UnsafeRawBufferPointer(rebasing: bytes[9..<12]))
    guard let status, 100...999 ~= status, end == 12 || bytes[12] == ASCII.space else { throw .badStatusLine }
    let reason = min(13, end)..<end
    guard FieldScanner.isValue(bytes, reason.lowerBound, reason.upperBound) else { throw .badStatusLine }
    start = .status(status, reason: reason)
  }
}
