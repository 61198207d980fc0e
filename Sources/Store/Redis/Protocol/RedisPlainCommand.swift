import NIOCore

/// A command that is not a script, on one key.
struct RedisPlainCommand {
  enum Reply {
    case value(ByteBuffer)
    case integer(Int64)
    case none
    /// Redis returned an error, and has changed nothing.
    case refused(String)
    case lost(String)
  }

  let capacity: Int
  let write: (inout RedisCommandWriter) -> Void

}

extension RedisPlainCommand {
  init(_ words: [String]) {
    self.init(capacity: words.reduce(16) { $0 + $1.utf8.count + 16 }) { writer in
      writer.byte(0x2A)
      writer.number(words.count)
      writer.literal("\r\n")
      for word in words { writer.argument(word) }
    }
  }
}

extension RedisPlainCommand.Reply {
  init(_ reply: borrowing HiredisReply) {
    switch reply.kind {
    case .text: self = .value(reply.withBytes { ByteBuffer(bytes: $0) })
    case .integer: self = .integer(reply.integer)
    case .error: self = .refused(reply.withBytes { String(decoding: $0, as: UTF8.self) })
    case .null, .array: self = .none
    }
  }
}
