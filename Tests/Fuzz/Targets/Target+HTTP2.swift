import NIOCore
import Wire
import WireOracle

extension Target {
  /// The fields of a request of HTTP/2, one a line as `name: value`: an accepted head can be sent on as HTTP/1.1.
  static func http2Fault(in bytes: [UInt8]) -> String? {
    let fields = bytes.split(separator: 0x0A).map { line in
      // The first colon may be that of a pseudo-header field.
      let colon = line.dropFirst().firstIndex(of: 0x3A) ?? line.endIndex
      return (
        name: String(decoding: line[..<colon], as: UTF8.self),
        value: String(decoding: line[colon...].dropFirst(2), as: UTF8.self)
      )
    }
    for isEnd in [false, true] {
      guard let request = try? RequestHead(http2: fields, isEnd: isEnd) else { continue }
      if let fault = Invariants.fault(in: request.head) { return fault }
      let body = BodyLength(request.framing)
      guard isEnd, (try? body.end()) == nil else { continue }
      return "a request without a body waits for one"
    }
    guard let trailers = try? HTTP2Trailers.lines(fields) else { return nil }
    let text = String(buffer: trailers)
    return text.isEmpty || text.hasSuffix("\r\n") ? nil : "trailers without an end: \(text)"
  }
}
