import CHiredis
import NIOCore
import Platform

final class RedisChannelHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The link; `nil` once it has given up this connection.
  private var link: RedisLink?
  private var context: ChannelHandlerContext?
  private var writer: SocketWriter?
  private var reader = HiredisReader()

  /// Whether bytes leave unchanged, without TLS.
  private let isPlain: Bool

  let attempt: Int

  init(link: RedisLink, attempt: Int, isPlain: Bool) {
    self.link = link
    self.attempt = attempt
    self.isPlain = isPlain
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = SocketWriter(below: context.channel, isPlain: isPlain)
  }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelActive(context: ChannelHandlerContext) { link?.opened(self) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    link?.arrived(bytes.readableBytes)
    bytes.withUnsafeReadableBytes { reader.feed($0) }
    do throws(RedisProtocolError) {
      while let link, let reply = try reader.next() { link.received(reply) }
    } catch {
      link?.broke("what Redis sent cannot be read: \(error.text)", .refusal)
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) { link?.readComplete() }

  func channelInactive(context: ChannelHandlerContext) {
    link?.broke("Redis closed the connection", .refusal)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    link?.broke(plainText(of: error), .failure(error))
  }

  func write(_ buffer: ByteBuffer) {
    if let context { writer?.write(buffer, context) }
  }

  var hasUnread: Bool { context.flatMap { writer?.hasUnread($0) } ?? false }

  var unsentBytes: Int { context.flatMap { writer?.unsentBytes($0) } ?? 0 }

  func abandon() {
    link = nil
    context?.close(promise: nil)
  }
}

/// The owner of hiredis' reader, which takes bytes and returns complete replies. No other file touches its pointers.
struct HiredisReader: ~Copyable {
  /// The maximum number of members of an array. hiredis allocates memory for the announced number at once.
  private static let maxMembers = 1 << 20

  private let reader: UnsafeMutablePointer<redisReader>
  private let functions: UnsafeMutablePointer<redisReplyObjectFunctions>

  init() {
    guard let reader = redisReaderCreate(), let own = reader.pointee.fn else {
      fatalError("HiredisReader: out of memory")
    }
    functions = .allocate(capacity: 1)
    functions.initialize(to: own.pointee)
    functions.pointee.createArray = { task, count in
      guard let task, Int(count) <= HiredisReader.maxMembers else { return nil }
      let own = task.pointee.privdata.assumingMemoryBound(to: redisReplyObjectFunctions.self)
      return own.pointee.createArray(task, count)
    }
    reader.pointee.privdata = UnsafeMutableRawPointer(own)
    reader.pointee.fn = functions
    self.reader = reader
  }

  deinit {
    redisReaderFree(reader)
    functions.deallocate()
  }

  mutating func feed(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    // The reader keeps an error, and `next` throws it.
    _ = redisReaderFeed(reader, start.assumingMemoryBound(to: CChar.self), bytes.count)
  }

  mutating func next() throws(RedisProtocolError) -> HiredisReply? {
    var reply: UnsafeMutableRawPointer?
    guard redisReaderGetReply(reader, &reply) == REDIS_OK else {
      let text = withUnsafeBytes(of: &reader.pointee.errstr) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      throw RedisProtocolError(text: text)
    }
    return reply.map { HiredisReply(root: $0.assumingMemoryBound(to: redisReply.self)) }
  }
}

struct RedisProtocolError: Error {
  var text: String
}

struct HiredisReply: ~Copyable {
  enum Kind { case null, integer, text, error, array }

  private let root: UnsafeMutablePointer<redisReply>

  fileprivate init(root: UnsafeMutablePointer<redisReply>) { self.root = root }

  deinit { freeReplyObject(root) }

  var kind: Kind { Self.kind(root) }
  var integer: Int64 { root.pointee.integer }
  var count: Int { kind == .array ? root.pointee.elements : 0 }

  func withBytes<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T { body(Self.bytes(root)) }

  func integer(at index: Int) -> Int64? {
    guard let member = member(index), Self.kind(member) == .integer else { return nil }
    return member.pointee.integer
  }

  func withBytes<T>(at index: Int, _ body: (UnsafeRawBufferPointer) -> T) -> T? {
    guard let member = member(index), Self.kind(member) == .text else { return nil }
    return body(Self.bytes(member))
  }

  var value: RedisValue { Self.value(root) }

  private func member(_ index: Int) -> UnsafeMutablePointer<redisReply>? {
    index < count ? root.pointee.element[index] : nil
  }

  private static func kind(_ reply: UnsafeMutablePointer<redisReply>) -> Kind {
    switch reply.pointee.type {
    case REDIS_REPLY_INTEGER: .integer
    case REDIS_REPLY_STRING, REDIS_REPLY_STATUS: .text
    case REDIS_REPLY_ERROR: .error
    case REDIS_REPLY_ARRAY: .array
    default: .null
    }
  }

  private static func bytes(_ reply: UnsafeMutablePointer<redisReply>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: reply.pointee.str, count: reply.pointee.len)
  }

  private static func value(_ reply: UnsafeMutablePointer<redisReply>) -> RedisValue {
    switch kind(reply) {
    case .null: .null
    case .integer: .integer(reply.pointee.integer)
    case .text: .text(String(decoding: bytes(reply), as: UTF8.self))
    case .error: .error(String(decoding: bytes(reply), as: UTF8.self))
    case .array: .array((0..<reply.pointee.elements).map { reply.pointee.element[$0].map(value) ?? .null })
    }
  }
}
