import Idempotency
import NIOCore
import Wire

/// A request as a fuzzer writes it: lines of a head, an empty line, and the body.
struct Sample {
  let head: MessageHead
  let target: RequestTarget
  let body: ByteBuffer

  /// `nil` where the codec refuses the head.
  init?(_ bytes: [UInt8]) {
    let end = bytes.indices.first { bytes[$0] == 0x0A && ($0 == 0 || bytes[$0 - 1] == 0x0A) }
    let lines = bytes[..<(end ?? bytes.count)].split(separator: 0x0A)
    self.init(lines: lines, body: end.map { bytes[($0 + 1)...] } ?? [])
  }

  /// A request with one field, `Content-Type`.
  init?(contentType: some Collection<UInt8>, body: ArraySlice<UInt8>) {
    let line = "Content-Type: ".utf8 + Array(contentType)
    self.init(lines: [ArraySlice("POST /v1/orders HTTP/1.1".utf8), line[...]], body: body)
  }

  private init?(lines: [ArraySlice<UInt8>], body: ArraySlice<UInt8>) {
    var input = ByteBuffer()
    for line in lines {
      input.writeBytes(line)
      input.writeString("\r\n")
    }
    input.writeString("Host: a\r\n\r\n")
    var decoder = RequestDecoder()
    guard case .head(let request)? = try? decoder.next(&input), let target = try? RequestTarget(request.head)
    else { return nil }
    head = request.head
    self.target = target
    self.body = ByteBuffer(bytes: body)
  }

  func digest(_ recipe: Recipe = Recipe(), body other: [UInt8]? = nil) -> Digest256 {
    Fingerprint.make(
      recipe: recipe, head: head, method: ByteBuffer(string: "POST"), path: target.path, query: target.query,
      body: other.map { ByteBuffer(bytes: $0) } ?? body
    ).digest
  }
}
