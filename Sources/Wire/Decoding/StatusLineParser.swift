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
