import NIOCore
import NIOEmbedded
import NIOHTTP1
import Wire

/// A backend's bytes, judged by both readings of the codec and by the oracle.
package enum ResponseReading {
  package enum Verdict: Equatable {
    /// Both readings see the same.
    case strict
    /// The tolerant reading has put faults right; what it forwards, the strict reading and the oracle read alike.
    case repaired
    /// The tolerant reading refuses the bytes, or they end too early.
    case refused
    /// A defect.
    case broken(String)
  }

  /// Everything that must hold for any bytes whatever.
  package static func check(_ bytes: [UInt8], to method: MessageHead.Method) -> Verdict {
    let (strict, strictEnd) = Decoded.response(bytes, to: method)
    let (tolerant, end) = Decoded.response(bytes, to: method, reading: .tolerant)
    let trickled = Decoded.response(bytes, to: method, cuts: Array(0..<bytes.count), reading: .tolerant)
    guard (tolerant, end) == trickled else {
      return .broken("cutting changes the meaning: \(tolerant), \(end) / \(trickled)")
    }
    if strict.error == nil {
      return strict == tolerant && strictEnd == end
        ? .strict : .broken("the readings differ: \(strict) / \(tolerant)")
    }
    guard tolerant.error == nil, end != .truncated else { return .refused }
    return fault(in: bytes, to: method).map(Verdict.broken) ?? .repaired
  }

  /// The rule that is broken where the tolerant reading's response is forwarded.
  private static func fault(in bytes: [UInt8], to method: MessageHead.Method) -> String? {
    var decoder = ResponseDecoder(method: method, reading: .tolerant)
    var input = ByteBuffer(bytes: bytes)
    var final: MessageHead?
    var body: [UInt8] = []
    while let event = try? decoder.next(&input) {
      switch event {
      case .head(let response):
        if let fault = Invariants.forwardingFault(response.head) { return fault }
        if !response.isInterim { final = response.head }
      case .body(let piece): body += Array(piece.readableBytesView)
      case .end: break
      }
    }
    guard let final, final.status != 101, final.status != 204, final.status != 304, method == .get else {
      return nil
    }
    if final.count(.contentLength) > 1 { return "two lengths are left" }
    if let length = final.string(.contentLength), Int(length) != body.count {
      return "the length is \(length)"
    }
    return forwardedFault(final, body)
  }

  /// Whether the forwarded form means the same to the strict reading and to the oracle.
  private static func forwardedFault(_ head: MessageHead, _ body: [UInt8]) -> String? {
    var forwarded = ByteBuffer(string: "HTTP/1.1 \(head.status) \r\n")
    head.copyFields(into: &forwarded, omitting: .length)
    forwarded.writeString("Content-Length: \(body.count)\r\n\r\n")
    forwarded.writeBytes(body)
    let bytes = Array(forwarded.readableBytesView)
    let (decoded, end) = Decoded.response(bytes)
    guard decoded.error == nil, end == .idle, decoded.messages.count == 1, decoded.messages[0].body == body
    else {
      return "what is forwarded is read as \(decoded), \(end)"
    }
    let (fields, oracleBody) = oracle(bytes)
    return fields == decoded.messages[0].fields && oracleBody == body
      ? nil : "the oracle reads what is forwarded as \(fields), \(oracleBody.count) bytes"
  }

  /// The fields and the body of a response to GET, as NIO's own decoder (llhttp) reads them.
  private static func oracle(_ bytes: [UInt8]) -> (fields: [String], body: [UInt8]) {
    let channel = EmbeddedChannel()
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    let decoder = ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes))
    _ = try? channel.pipeline.syncOperations.addHandler(decoder)
    _ = try? channel.writeOutbound(
      HTTPClientRequestPart.head(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")))
    _ = try? channel.writeInbound(ByteBuffer(bytes: bytes))
    var (fields, body): ([String], [UInt8]) = ([], [])
    while let part = try? channel.readInbound(as: HTTPClientResponsePart.self) {
      switch part {
      case .head(let head): fields = head.headers.map { "\($0.name): \($0.value)" }
      case .body(let piece): body += Array(piece.readableBytesView)
      case .end: break
      }
    }
    return (fields, body)
  }
}
