import Idempotency
import NIOCore
import Platform
import Wire

/// The encoder of responses for HTTP/1.1, which writes a whole response into one buffer.
enum ResponseEncoder {
  /// The delimitation of a response's body for one client.
  enum Framing: Equatable {
    /// A response that has no body, whatever its fields say.
    case none
    case length(Int)
    case chunked
    /// The end of the connection marks the end of the body, for HTTP/1.0.
    case close

    init(_ content: ClientResponseHead.Content, hasTrailers: Bool = false, minorVersion: UInt8) {
      switch content {
      case .none: self = .none
      // Trailers need chunks, which HTTP/1.0 does not know.
      case .length(let length): self = hasTrailers && minorVersion == 1 ? .chunked : .length(length)
      case .unknown: self = minorVersion == 1 ? .chunked : .close
      }
    }
  }

  /// A whole response.
  static func whole(
    _ response: ClientResponse, minorVersion: UInt8, isClosing: Bool, now: () -> Int = WallClock.seconds
  ) -> ByteBuffer {
    let framing = Framing(
      response.head.content, hasTrailers: response.trailers.readableBytes > 0, minorVersion: minorVersion)
    var out = head(
      response.head, framing: framing, minorVersion: minorVersion, isClosing: isClosing,
      bodyCapacity: response.body.readableBytes, now: now)
    writePiece(response.body, framing: framing, to: &out)
    if framing == .chunked { out.writeLastChunk(trailers: response.trailers) }
    return out
  }

  /// A response's head, with room for so much of its body.
  static func head(
    _ head: ClientResponseHead, framing: Framing, minorVersion: UInt8, isClosing: Bool, bodyCapacity: Int,
    now: () -> Int = WallClock.seconds
  ) -> ByteBuffer {
    var out = ByteBufferAllocator().buffer(capacity: head.capacity + bodyCapacity)
    out.writeStatusLine(head.status)
    head.writeFields(into: &out, now: now)
    switch framing {
    case .none, .close: break
    case .length(let count): out.writeContentLength(count)
    case .chunked: out.writeChunkedCoding()
    }
    if isClosing || framing == .close {
      out.writeLiteral("Connection: close\r\n")
    } else if minorVersion == 0 {
      out.writeLiteral("Connection: keep-alive\r\n")
    }
    out.writeLiteral("\r\n")
    return out
  }

  /// A response of 101, with the protocol that was chosen.
  static func switching(_ head: MessageHead, label: ResponseLabel?) -> ByteBuffer {
    var out = ByteBufferAllocator().buffer(capacity: head.bytes.readableBytes + 64)
    out.writeStatusLine(head.status)
    head.copyFields(into: &out, omitting: ClientResponseHead.droppedFromResponses)
    out.writeLiteral("Connection: Upgrade\r\n")
    for field in head.fields where field.name == .upgrade {
      out.writeLiteral("Upgrade: ")
      out.writeImmutableBuffer(head.slice(field.valueRange))
      out.writeLiteral("\r\n")
    }
    label?.write(into: &out)
    out.writeLiteral("\r\n")
    return out
  }

  /// A piece of a body in its framing.
  static func writePiece(_ piece: ByteBuffer, framing: Framing, to out: inout ByteBuffer) {
    switch framing {
    case .none: break
    case .length, .close: out.writeImmutableBuffer(piece)
    case .chunked:
      guard piece.readableBytes > 0 else { return }
      out.writeChunkHeader(piece.readableBytes)
      out.writeImmutableBuffer(piece)
      out.writeChunkEnd()
    }
  }
}
