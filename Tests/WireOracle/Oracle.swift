import NIOCore
import NIOEmbedded
import NIOHTTP1

/// NIO's own HTTP/1.1 decoder (llhttp), with which the codec is compared.
enum Oracle {
  struct Message: Equatable {
    var method: String
    var target: String
    var fields: [String]
    var body: [UInt8] = []
    var isComplete = false
  }

  /// The oracle's reading of a client's bytes, and whether it refuses them somewhere.
  static func requests(_ bytes: [UInt8]) -> (messages: [Message], refuses: Bool) {
    let channel = EmbeddedChannel()
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    var refuses = false
    do {
      let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)
      try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(decoder))
      try channel.writeInbound(ByteBuffer(bytes: bytes))
    } catch {
      refuses = true
    }
    var messages: [Message] = []
    while let part = try? channel.readInbound(as: HTTPServerRequestPart.self) {
      switch part {
      case .head(let head):
        messages.append(
          Message(
            method: head.method.rawValue, target: head.uri,
            fields: head.headers.map { "\($0.name): \(trimmed($0.value))" }))
      case .body(let piece): messages[messages.count - 1].body += Array(piece.readableBytesView)
      case .end: messages[messages.count - 1].isComplete = true
      }
    }
    return (messages, refuses)
  }

  /// llhttp leaves tabs at the end of a value, which RFC 9112, section 5, takes off.
  private static func trimmed(_ value: String) -> Substring {
    value.dropLast(value.utf8.reversed().prefix { $0 == 0x20 || $0 == 0x09 }.count)
  }
}
