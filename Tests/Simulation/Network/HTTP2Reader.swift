import NIOCore
import NIOHPACK

/// A part of a request that has left.
enum RequestEvent {
  /// The head of a request, which may have a body, and its stream.
  case head(HTTPMessage, stream: Int)
  /// A request that is whole.
  case whole(HTTPMessage, stream: Int)
}

/// Reads the requests of a connection as their bytes leave.
protocol RequestReader {
  mutating func feed(_ bytes: ByteBuffer) -> [RequestEvent]
}

/// Reads the requests of an HTTP/1.1 connection.
struct HTTP1RequestReader: RequestReader {
  private var reader = HTTPReader(isClient: false)
  private var isNoted = false

  mutating func feed(_ bytes: ByteBuffer) -> [RequestEvent] {
    reader.feed(bytes)
    var events: [RequestEvent] = []
    while let head = reader.nextHead() {
      if !isNoted { events.append(.head(head, stream: 0)) }
      isNoted = true
      guard let message = reader.next() else { break }
      events.append(.whole(message, stream: 0))
      isNoted = false
    }
    return events
  }
}

/// Reads the requests of an HTTP/2 connection as their bytes leave. It trusts their form: what Semel sends is judged by
/// others.
struct HTTP2Reader: RequestReader {
  private static let preface = 24
  private static let frameHead = 9

  private var buffer = ByteBuffer()
  private var skipsPreface = true
  private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
  private var messages: [Int: HTTPMessage] = [:]
  /// The block of a head that further frames continue.
  private var block = ByteBuffer()
  private var endsStream = false

  mutating func feed(_ bytes: ByteBuffer) -> [RequestEvent] {
    buffer.writeImmutableBuffer(bytes)
    if skipsPreface {
      guard buffer.readableBytes >= Self.preface else { return [] }
      buffer.moveReaderIndex(forwardBy: Self.preface)
      skipsPreface = false
    }
    var events: [RequestEvent] = []
    while let (kind, flags, stream, payload) = nextFrame() {
      events += take(kind, flags, stream, payload)
    }
    buffer.discardReadBytes()
    return events
  }

  private mutating func nextFrame() -> (UInt8, UInt8, Int, ByteBuffer)? {
    guard buffer.readableBytes >= Self.frameHead,
      let high = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self),
      let low = buffer.getInteger(at: buffer.readerIndex + 1, as: UInt16.self)
    else { return nil }
    let length = Int(high) << 16 | Int(low)
    guard buffer.readableBytes >= Self.frameHead + length else { return nil }
    buffer.moveReaderIndex(forwardBy: 3)
    guard let kind: UInt8 = buffer.readInteger(), let flags: UInt8 = buffer.readInteger(),
      let stream: UInt32 = buffer.readInteger(), let payload = buffer.readSlice(length: length)
    else { return nil }
    return (kind, flags, Int(stream & 0x7FFF_FFFF), payload)
  }

  private mutating func take(
    _ kind: UInt8, _ flags: UInt8, _ stream: Int, _ payload: ByteBuffer
  ) -> [RequestEvent] {
    switch kind {
    case 0:
      messages[stream]?.body += payload.readableBytesView
      return flags & 1 != 0 ? ended(stream) : []
    case 1:
      // NIO sends neither padding nor priorities.
      precondition(flags & 0x28 == 0, "HTTP2Reader: a head with padding or a priority")
      block = payload
      endsStream = flags & 1 != 0
    case 9: block.writeImmutableBuffer(payload)
    default: return []
    }
    guard flags & 4 != 0, let headers = try? decoder.decodeHeaders(from: &block) else { return [] }
    let message = HTTPMessage(headers)
    messages[stream] = message
    return [.head(message, stream: stream)] + (endsStream ? ended(stream) : [])
  }

  private mutating func ended(_ stream: Int) -> [RequestEvent] {
    messages.removeValue(forKey: stream).map { [.whole($0, stream: stream)] } ?? []
  }
}

extension HTTPMessage {
  /// The head of a message in HTTP/2.
  init(_ headers: HPACKHeaders) {
    let pseudo = { (name: String) in headers.first(name: name) ?? "" }
    let status = pseudo(":status")
    start = status.isEmpty ? "\(pseudo(":method")) \(pseudo(":path")) HTTP/2" : "HTTP/2 \(status)"
    fields = [:]
    for (name, value, _) in headers where !name.hasPrefix(":") { fields[name] = value }
    body = []
  }
}
