import NIOCore
import Wire
import WireOracle

extension Target {
  /// The fields of a request or a response of HTTP/2, one a line as `name: value`: an accepted head can be sent on as
  /// HTTP/1.1.
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
    return responseFault(in: fields) ?? trailersFault(in: try? HTTP2Trailers.lines(fields))
      ?? trailersFault(in: try? HTTP2Trailers.responseLines(fields, limits: HeadLimits()))
  }

  private static func responseFault(in fields: [(name: String, value: String)]) -> String? {
    for method in [MessageHead.Method.get, .head, .connect] {
      for isEnd in [false, true] {
        guard
          let response = try? ResponseHead(http2: fields, isEnd: isEnd, method: method, limits: HeadLimits())
        else { continue }
        if let fault = Invariants.forwardingFault(response.head) { return fault }
        if response.head.status == 101 || isEnd && response.head.status < 200 {
          return "a response that HTTP/2 does not have: \(response.head.status)"
        }
      }
    }
    return nil
  }

  private static func trailersFault(in lines: ByteBuffer?) -> String? {
    let text = lines.map { String(buffer: $0) } ?? ""
    return text.isEmpty || text.hasSuffix("\r\n") ? nil : "trailers without an end: \(text)"
  }
}
