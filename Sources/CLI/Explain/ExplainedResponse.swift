import Foundation
import Idempotency
import NIOCore
import Wire

/// A response in a file as `curl -i` prints it: a status line, fields, an empty line and the body.
struct ExplainedResponse {
  let head: MessageHead
  let body: ByteBuffer

  /// Reads a response; `nil` if the text is none. Any version and line end, and interim responses before it, are taken.
  init?(_ content: Data, limits: HeadLimits) {
    var rest = content[...]
    while true {
      guard let end = Self.endOfHead(rest) else { return nil }
      let lines = String(decoding: rest[..<end.head], as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false)
        .map { $0.hasSuffix("\r") ? $0.dropLast() : $0 }
      rest = rest[end.body...]
      guard let head = Self.head(lines, limits) else { return nil }
      guard head.status < 200 else {
        (self.head, body) = (head, ByteBuffer(bytes: rest))
        return
      }
    }
  }

  /// The end of the first head and the begin of what follows its empty line. Without one, the head is all there is.
  private static func endOfHead(_ text: Data) -> (head: Data.Index, body: Data.Index)? {
    guard !text.isEmpty else { return nil }
    let marks = ["\r\n\r\n", "\n\n"].compactMap { text.firstRange(of: Data($0.utf8)) }
    guard let mark = marks.min(by: { $0.lowerBound < $1.lowerBound }) else {
      return (text.endIndex, text.endIndex)
    }
    return (mark.lowerBound, mark.upperBound)
  }

  /// The head without the fields of its body's framing, which may no longer be right.
  private static func head(_ lines: [Substring], _ limits: HeadLimits) -> MessageHead? {
    guard var line = lines.first, line.hasPrefix("HTTP/") else { return nil }
    line = "HTTP/1.1" + line.drop { $0 != " " }
    // HTTP/2 has no reason, and its status line no space behind the status.
    if line.split(separator: " ").count == 2 { line += line.hasSuffix(" ") ? "" : " " }
    let fields = lines.dropFirst().filter { line in
      !line.isEmpty
        && !["content-length", "transfer-encoding"].contains(line.prefix { $0 != ":" }.lowercased())
    }
    var bytes = ByteBuffer(string: ([line] + fields).joined(separator: "\r\n") + "\r\n\r\n")
    var decoder = ResponseDecoder(limits: limits, method: .get, reading: .tolerant)
    guard case .head(let response)? = try? decoder.next(&bytes) else { return nil }
    return response.head
  }
}
