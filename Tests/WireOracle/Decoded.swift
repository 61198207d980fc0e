import NIOCore
import Wire

/// The result of a decoder for some bytes, in a form that can be compared.
package struct Decoded: Equatable, CustomStringConvertible {
  package struct Message: Equatable {
    package var startLine: String
    package var fields: [String]
    package var body: [UInt8] = []
    package var trailers: String = ""
    package var isComplete = false

    package init(
      startLine: String, fields: [String], body: [UInt8] = [], trailers: String = "", isComplete: Bool = false
    ) {
      self.startLine = startLine
      self.fields = fields
      self.body = body
      self.trailers = trailers
      self.isComplete = isComplete
    }
  }

  package var messages: [Message] = []
  package var error: WireError?
  /// The status of a response, also of one that is refused behind its status line.
  package var status: Int?

  package init(messages: [Message] = [], error: WireError? = nil, status: Int? = nil) {
    self.messages = messages
    self.error = error
    self.status = status
  }

  package var description: String { "\(messages), \(error.map { "\($0)" } ?? "no error")" }

  /// The bytes, fed in pieces that end at the given offsets.
  package static func requests(_ bytes: [UInt8], cuts: [Int] = [], limits: HeadLimits = HeadLimits())
    -> Decoded
  {
    var decoder = RequestDecoder(limits: limits)
    return feed(bytes, cuts) { input throws(WireError) in
      switch try decoder.next(&input) {
      case .head(let request):
        let ends = request.keepAlive ? "keep-alive" : "close"
        let waits = request.expectsContinue ? " continue" : ""
        return .head(request.head, "\(request.framing) \(ends)\(waits)")
      case .body(let piece): return .body(piece)
      case .end(let trailers): return .end(trailers)
      case nil: return nil
      }
    }
  }

  /// The bytes as the response to one request, and what the end of input then means.
  package static func response(
    _ bytes: [UInt8], to method: MessageHead.Method = .get, cuts: [Int] = [], reading: Reading = .strict
  ) -> (Decoded, ResponseDecoder.InputEnd) {
    var decoder = ResponseDecoder(method: method, reading: reading)
    var decoded = feed(bytes, cuts) { input throws(WireError) in
      switch try decoder.next(&input) {
      case .head(let response):
        let ends = response.keepAlive ? "keep-alive" : "close"
        return .head(response.head, "\(response.framing) \(ends)\(response.hasCertainEnd ? "" : " doubtful")")
      case .body(let piece): return .body(piece)
      case .end(let trailers): return .end(trailers)
      case nil: return nil
      }
    }
    decoded.status = decoder.status
    return (decoded, decoder.finish())
  }

  private enum Event {
    case head(MessageHead, String)
    case body(ByteBuffer)
    case end(ByteBuffer)
  }

  private static func feed(
    _ bytes: [UInt8], _ cuts: [Int], _ next: (inout ByteBuffer) throws(WireError) -> Event?
  ) -> Decoded {
    var decoded = Decoded()
    var input = ByteBuffer()
    var start = 0
    for end in cuts + [bytes.count] {
      input.writeBytes(bytes[start..<end])
      start = end
      do throws(WireError) {
        while let event = try next(&input) { decoded.take(event) }
      } catch {
        decoded.error = error
        return decoded
      }
    }
    return decoded
  }

  private mutating func take(_ event: Event) {
    switch event {
    case .head(let head, let more):
      let line =
        switch head.start {
        case .request(_, let method, let target): "\(head.string(method)) \(head.string(target))"
        case .status(let status, let reason): "\(status) \(head.string(reason))"
        }
      let fields = head.fields.map { "\(head.string($0.nameRange)): \(head.string($0.valueRange))" }
      messages.append(Message(startLine: "\(line) 1.\(head.minorVersion) \(more)", fields: fields))
    case .body(let piece):
      messages[messages.count - 1].body += Array(piece.readableBytesView)
    case .end(let trailers):
      messages[messages.count - 1].trailers = String(buffer: trailers)
      messages[messages.count - 1].isComplete = true
    }
  }
}
