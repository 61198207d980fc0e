import Idempotency
import NIOCore
import NIOPosix
import NIOTLS
import Platform
import TLS
import Wire

/// One connection for a few commands, which ends with their replies.
struct RedisConversation {
  struct Fault: Error { let reason: String }

  struct Replies: Sendable {
    var values: [RedisValue]
    let firstAfter: Milliseconds
  }

  let address: ServerAddress
  let login: RedisLogin
  let timeout: Milliseconds
  let hasURL: Bool

  func replies(to commands: [[String]]) async throws(Fault) -> Replies {
    var all = commands
    let password: Secret?
    do throws(RedisLogin.Fault) { password = try login.currentPassword() } catch {
      throw Fault(reason: error.reason)
    }
    if let password {
      all.insert(["AUTH"] + (login.user.map { [$0] } ?? []) + [password.revealed], at: 0)
    }
    var replies = try await exchange(all)
    guard all.count > commands.count else { return replies }
    if case .error(let text) = replies.values.removeFirst() { throw Fault(reason: RedisRefusal.advice(text)) }
    return replies
  }

  private func tlsQuestion(_ end: RedisLogin.EarlyEnd) -> String {
    login.tlsQuestion(after: end, hasURL: hasURL)
  }

  private func exchange(_ commands: [[String]]) async throws(Fault) -> Replies {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let promise = loop.makePromise(of: Replies.self)
    let limit = loop.scheduleTask(in: .milliseconds(max(timeout, 2000).count)) {
      promise.fail(Fault(reason: "it does not reply" + tlsQuestion(.silence)))
    }
    let bootstrap = ClientBootstrap(group: loop).connectTimeout(.seconds(2)).channelInitializer { channel in
      channel.eventLoop.makeCompletedFuture {
        let handlers = channel.pipeline.syncOperations
        if let tls = login.tls { try handlers.addHandler(tls.renewedHandler(for: address.host)) }
        try handlers.addHandler(
          ReplyCollector(commands: commands, promise: promise, tlsQuestion: tlsQuestion))
      }
    }
    let connected =
      switch address {
      case .tcp(let host, let port): bootstrap.connect(host: host, port: port)
      case .unix(let path): bootstrap.connect(unixDomainSocketPath: path)
      }
    connected.whenFailure { promise.fail($0) }
    defer {
      limit.cancel()
      connected.whenSuccess { $0.close(promise: nil) }
    }
    do {
      return try await promise.futureResult.get()
    } catch {
      throw (error as? Fault) ?? Fault(reason: plainText(of: error))
    }
  }
}

private final class ReplyCollector: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let commands: [[String]]
  private let promise: EventLoopPromise<RedisConversation.Replies>
  private let tlsQuestion: (RedisLogin.EarlyEnd) -> String
  private var reader = HiredisReader()
  private var replies: [RedisValue] = []
  private var writtenAt = BootInstant.now
  private var firstAfter: Milliseconds?

  init(
    commands: [[String]], promise: EventLoopPromise<RedisConversation.Replies>,
    tlsQuestion: @escaping (RedisLogin.EarlyEnd) -> String
  ) {
    self.commands = commands
    self.promise = promise
    self.tlsQuestion = tlsQuestion
  }

  private func end(_ reason: String, _ end: RedisLogin.EarlyEnd) {
    promise.fail(RedisConversation.Fault(reason: reason + (replies.isEmpty ? tlsQuestion(end) : "")))
  }

  func channelActive(context: ChannelHandlerContext) {
    var buffer = context.channel.allocator.buffer(capacity: 1024)
    for command in commands { buffer.writeCommand(command) }
    writtenAt = .now
    context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // Until now the commands have waited.
    if case .handshakeCompleted = event as? TLSUserEvent { writtenAt = .now }
    context.fireUserInboundEventTriggered(event)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let firstAfter = firstAfter ?? BootInstant.now - writtenAt
    self.firstAfter = firstAfter
    unwrapInboundIn(data).withUnsafeReadableBytes { reader.feed($0) }
    do throws(RedisProtocolError) {
      while let reply = try reader.next() { replies.append(reply.value) }
    } catch {
      return end("what it sends cannot be read: \(error.text)", .refusal)
    }
    guard replies.count >= commands.count else { return }
    promise.succeed(.init(values: Array(replies.prefix(commands.count)), firstAfter: firstAfter))
  }

  func channelInactive(context: ChannelHandlerContext) {
    end("it closed the connection", .refusal)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    end(plainText(of: error), .failure(error))
    context.close(promise: nil)
  }
}
