import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import Platform

/// The endpoint was not reached: nothing was sent.
public struct NotReached: Error, Equatable, CustomStringConvertible {
  public let description: String
}

/// One connection of the check's own. It sends exactly the bytes that it is given.
struct Connection: Sendable {
  typealias Timed = (outcome: Exchange.Outcome, at: ContinuousClock.Instant)

  private let channel: any Channel
  /// One for each request, in their order. They never fail.
  private let outcomes: [EventLoopFuture<Timed>]
  private let firstByte: EventLoopFuture<Void>

  static func open(
    to endpoint: Endpoint, tls: NIOSSLContext?, methods: [String], within timeout: Duration
  ) async throws(NotReached) -> Connection {
    let opening = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: Connection.self)
    let bootstrap = ClientBootstrap(group: opening.futureResult.eventLoop)
      .connectTimeout(TimeAmount(timeout))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let handler = ExchangeHandler(
            methods: methods, isSecure: tls != nil, timeout: TimeAmount(timeout), on: channel.eventLoop)
          if let tls {
            let name = endpoint.isAddress ? nil : endpoint.host
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls, serverHostname: name))
          }
          try channel.pipeline.syncOperations.addHandler(handler)
          let connection = Connection(
            channel: channel, outcomes: handler.outcomes.map(\.futureResult),
            firstByte: handler.firstByte.futureResult)
          handler.established.futureResult.map { connection }.cascade(to: opening)
        }
      }
    bootstrap.connect(host: endpoint.host, port: endpoint.port).cascadeFailure(to: opening)
    do {
      return try await opening.futureResult.get()
    } catch {
      throw NotReached(description: "\(endpoint.authority): \(reason(error))")
    }
  }

  /// Sends bytes; returns once the system has taken them, or the connection has ended.
  func send(_ bytes: some Sequence<UInt8>) async {
    try? await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
  }

  func outcome(_ number: Int = 0) async -> Timed {
    // The futures never fail.
    (try? await outcomes[number].get()) ?? (.none("the connection ended"), .now)
  }

  /// Returns once the first byte of a response is there, or will not come.
  func awaitFirstByte() async { try? await firstByte.get() }

  func close() async { try? await channel.close().get() }

  private static func reason(_ error: any Error) -> String {
    switch error.atFirstAddress {
    case ChannelError.connectTimeout: "connecting took too long"
    case let error as ExchangeHandler.Ended: error.reason
    default: plainText(of: error)
    }
  }
}

/// Takes the bytes of the endpoint to outcomes. Confined to its event loop.
private final class ExchangeHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  struct Ended: Error { let reason: String }

  let outcomes: [EventLoopPromise<Connection.Timed>]
  let firstByte: EventLoopPromise<Void>
  let established: EventLoopPromise<Void>
  private let isSecure: Bool
  private let timeout: TimeAmount
  private var reader: ResponseReader
  private var reported = 0
  private var timer: Scheduled<Void>?
  private var fault: String?

  init(methods: [String], isSecure: Bool, timeout: TimeAmount, on loop: any EventLoop) {
    outcomes = methods.map { _ in loop.makePromise() }
    firstByte = loop.makePromise()
    established = loop.makePromise()
    reader = ResponseReader(methods: methods)
    self.isSecure = isSecure
    self.timeout = timeout
  }

  func channelActive(context: ChannelHandlerContext) {
    let channel = context.channel
    timer = context.eventLoop.assumeIsolated().scheduleTask(in: timeout) {
      let reason = "no complete response within \(self.timeout.nanoseconds / 1_000_000_000) s"
      self.report(self.reader.abandon(reason))
      self.end(reason)
      channel.close(promise: nil)
    }
    if !isSecure { established.succeed() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted = event as? TLSUserEvent { established.succeed() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    firstByte.succeed()
    report(reader.receive(unwrapInboundIn(data)))
    if reported == outcomes.count { timer?.cancel() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    fault = "\(error)"
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) { end("the connection ended") }

  func handlerRemoved(context: ChannelHandlerContext) { end("the connection ended") }

  private func end(_ reason: String) {
    timer?.cancel()
    let reason = fault.map { "\(reason): \($0)" } ?? reason
    established.fail(Ended(reason: reason))
    firstByte.fail(Ended(reason: reason))
    report(reader.finish(reason))
  }

  private func report(_ new: [Exchange.Outcome]) {
    for outcome in new where reported < outcomes.count {
      outcomes[reported].succeed((outcome, .now))
      reported += 1
      if case .response = outcome { continue }
      // Behind bytes that are no response, the others cannot be found.
      while reported < outcomes.count {
        outcomes[reported].succeed((outcome, .now))
        reported += 1
      }
    }
  }
}
