import Idempotency
import Logging
import NIOCore
import NIOEmbedded
import Platform
import Synchronization
import Telemetry
import Testing
import Wire

@testable import Proxy

/// The HTTP/1.1 handler on an embedded channel. The tests run its deliveries themselves.
struct ClientConnectionTests {
  private final class Harness {
    let channel = EmbeddedChannel()
    let downstream: Downstream
    var deliveries: [Delivery] = []

    init() throws {
      let metrics = Metrics(loops: 1)
      let environment = ProxyEnvironment(counters: metrics.counters, logger: Logger(label: "test"))
      downstream = Downstream(
        context: EventLoopContext(loop: channel.embeddedEventLoop), environment: environment,
        configuration: Self.configuration(), metrics: metrics.loops[0])
      downstream.start = { [unowned self] in deliveries.append($0) }
      let connection = ClientConnection(downstream: downstream, peer: ClientPeer(address: "192.0.2.1"))
      try channel.pipeline.syncOperations.addHandler(connection)
      try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait()
    }

    static func configuration(limits: LimitSettings = LimitSettings()) -> ConfigurationSnapshot {
      ConfigurationSnapshot(
        routes: RouteTable([]), fallback: nil, limits: limits,
        accessLog: AccessLog(sink: LogSink(), format: .json, isEnabled: false),
        trustedProxies: TrustedProxies(),
        unmatchedKeys: .pass, passesUnderscores: false)
    }

    func send(_ text: String) throws { try channel.writeInbound(ByteBuffer(string: text)) }

    func endInput() { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }

    /// Responds to a delivery with a problem of this status.
    func respond(to index: Int) { deliveries[index].respond(with: ClientResponse(.requestTimeout)) }

    /// The bytes that the client has got since the last call.
    func received() throws -> String {
      var text = ""
      while let bytes = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
      return text
    }

    /// Ends what a test leaves open.
    func close() { _ = try? channel.finish(acceptAlreadyClosed: true) }
  }

  private static func responses(in text: String) -> Int {
    text.ranges(of: "HTTP/1.1 408").count
  }

  private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  @Test func `pipelined requests are run one after the other`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send(Self.get + Self.get)
    #expect(harness.deliveries.count == 1)
    harness.respond(to: 0)
    #expect(harness.deliveries.count == 2)
    harness.respond(to: 1)
    let text = try harness.received()
    #expect(Self.responses(in: text) == 2)
    #expect(!text.contains("Connection: close"))
    #expect(harness.channel.isActive)
  }

  @Test func `a body arrives piece by piece`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
    #expect(harness.deliveries.first?.wholeBody == nil)
    try harness.send("cd")
    #expect(harness.deliveries.first?.wholeBody == ByteBuffer(string: "abcd"))
  }

  /// Chunks that are plain are joined; these are not.
  @Test func `chunks of one byte are decoded over several turns of the loop`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    let count = 10_000
    try harness.send(String(repeating: "0001\r\nx\r\n", count: count) + "0\r\n\r\n")
    let delivery = try #require(harness.deliveries.first)
    var turns = 0
    var before = 0
    while delivery.wholeBody == nil, turns < 100 {
      #expect(delivery.logEntry.requestBytes - before <= 512)
      before = delivery.logEntry.requestBytes
      harness.channel.embeddedEventLoop.advanceTime(by: LoopTurn.pause)
      turns += 1
    }
    #expect(delivery.wholeBody?.readableBytes == count)
    #expect(turns >= count / 512)
  }

  @Test func `requests that are pipelined by the hundred are run over several turns of the loop`() throws {
    let harness = try Harness()
    defer { harness.close() }
    harness.downstream.start = { [unowned harness] in
      harness.deliveries.append($0)
      $0.respond(with: ClientResponse(.requestTimeout))
    }
    try harness.send(String(repeating: Self.get, count: 300))
    #expect(harness.deliveries.count <= 64)
    harness.endInput()
    for _ in 0..<10 { harness.channel.embeddedEventLoop.advanceTime(by: .milliseconds(1)) }
    #expect(harness.deliveries.count == 300)
    #expect(try Self.responses(in: harness.received()) == 300)
    #expect(harness.channel.isActive == false)
  }

  @Test func `heads are charged by their bytes`() throws {
    let harness = try Harness()
    defer { harness.close() }
    harness.downstream.start = { [unowned harness] in
      harness.deliveries.append($0)
      $0.respond(with: ClientResponse(.requestTimeout))
    }
    let field = "X: \(String(repeating: "a", count: 15_000))\r\n"
    let large = "GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: field, count: 4))\r\n"
    try harness.send(String(repeating: large, count: 30))
    // 512 parts; 66 for each.
    #expect(harness.deliveries.count == 8)
    for _ in 0..<10 { harness.channel.embeddedEventLoop.advanceTime(by: .milliseconds(1)) }
    #expect(harness.deliveries.count == 30)
  }

  @Test func `requests that are responded to by tasks share the budget of a turn`() throws {
    let harness = try Harness()
    defer { harness.close() }
    let context = harness.downstream.context
    harness.downstream.start = { [unowned harness] delivery in
      harness.deliveries.append(delivery)
      context.task { delivery.respond(with: ClientResponse(.requestTimeout)) }
    }
    try harness.send(String(repeating: Self.get, count: 300))
    var before = 0
    var turns = 0
    while harness.deliveries.count < 300, turns < 100 {
      #expect(harness.deliveries.count - before <= 64)
      before = harness.deliveries.count
      harness.channel.embeddedEventLoop.advanceTime(by: LoopTurn.pause)
      turns += 1
    }
    #expect(try Self.responses(in: harness.received()) == 300)
    #expect(turns >= 300 / 64)
  }

  @Test func `requests that arrive one by one wait for no turn`() throws {
    let harness = try Harness()
    defer { harness.close() }
    for index in 0..<300 {
      try harness.send(Self.get)
      harness.respond(to: index)
    }
    #expect(try Self.responses(in: harness.received()) == 300)
  }

  @Test func `an early response is the connection's last`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
    harness.respond(to: 0)
    #expect(try harness.received().contains("Connection: close"))
    #expect(harness.channel.isActive == false)
  }

  @Test func `a task that waits for the rest of a body ends with the run`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
    let delivery = try #require(harness.deliveries.first)
    let hasEnded = Mutex(false)
    withExtendedLifetime(hasEnded) {
      harness.downstream.context.task {
        _ = try? await delivery.next()
        hasEnded.withLock { $0 = true }
      }
      harness.channel.embeddedEventLoop.run()
      #expect(!hasEnded.withLock { $0 })
      // The backend has responded early, or has ended a tunnel.
      harness.respond(to: 0)
      delivery.runEnded()
      harness.channel.embeddedEventLoop.run()
      #expect(hasEnded.withLock { $0 })
    }
  }

  @Test func `a half-close within a body fails it`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
    harness.endInput()
    #expect(harness.deliveries.first?.bodyFailure?.status == 400)
  }

  @Test func `a half-close behind pipelined requests ends after their responses`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send(Self.get + Self.get)
    harness.endInput()
    harness.respond(to: 0)
    harness.respond(to: 1)
    #expect(harness.deliveries.count == 2)
    #expect(try Self.responses(in: harness.received()) == 2)
    #expect(harness.channel.isActive == false)
  }

  @Test func `bytes that are no request get 400`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send("no request\r\n\r\n")
    #expect(harness.deliveries.isEmpty)
    #expect(try harness.received().hasPrefix("HTTP/1.1 400"))
    #expect(harness.channel.isActive == false)
  }

  @Test func `a delivery is taken by one runner, and reported once`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send(Self.get)
    let delivery = try #require(harness.deliveries.first)
    #expect(delivery.isStarted && !delivery.start(on: harness.downstream))
    let reports = [delivery.takeReport(), delivery.takeReport()]
    #expect(reports == [true, false])
    #expect(!delivery.start(on: harness.downstream) && harness.deliveries.count == 1)
  }

  @Test func `a client that goes away leaves its delivery`() throws {
    let harness = try Harness()
    try harness.send(Self.get)
    harness.close()
    #expect(harness.deliveries.first?.isConnected == false)
    harness.respond(to: 0)
    #expect(harness.downstream.connections.isEmpty)
  }

  /// A channel's first handler, with which it ends as one that NIO has not registered yet.
  private final class Unregistered: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelInactive(context: ChannelHandlerContext) {}
  }

  @Test(arguments: [true, false])
  func `a connection that ends before it is registered leaves nothing behind`(hasHeader: Bool) throws {
    let harness = try Harness()
    defer { harness.close() }
    let loop = harness.channel.embeddedEventLoop
    weak var left: (any ChannelHandler)?
    do {
      let channel = EmbeddedChannel(handler: Unregistered(), loop: loop)
      let handler: any ChannelHandler =
        if hasHeader {
          ClientNegotiation(
            downstream: harness.downstream, address: "192.0.2.1",
            to: Listener(.tcp(host: "192.0.2.2", port: 80), mode: 0, proxyProtocol: true))
        } else {
          ClientConnection(downstream: harness.downstream, peer: ClientPeer(address: "192.0.2.1"))
        }
      left = handler
      try channel.pipeline.syncOperations.addHandler(handler)
      #expect(harness.downstream.connections.count == 2)
      channel.close(promise: nil)
      loop.run()
    }
    #expect(harness.downstream.connections.count == 1)
    #expect(left == nil)
  }

  @Test func `draining closes an idle connection, and a busy one after its response`() throws {
    let idle = try Harness()
    idle.downstream.drain()
    #expect(idle.channel.isActive == false)
    let busy = try Harness()
    try busy.send(Self.get)
    busy.downstream.environment.drain()
    busy.downstream.drain()
    #expect(busy.channel.isActive)
    busy.respond(to: 0)
    #expect(try busy.received().contains("Connection: close"))
    #expect(busy.channel.isActive == false)
  }

  @Test func `a kept connection adopts new limits, also between requests without a body`() throws {
    let harness = try Harness()
    defer { harness.close() }
    try harness.send(Self.get)
    harness.respond(to: 0)
    var limits = LimitSettings()
    limits.headerBytes = 20
    harness.downstream.adopt(Harness.configuration(limits: limits))
    _ = try harness.received()
    try harness.send("GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n")
    #expect(try harness.received().hasPrefix("HTTP/1.1 431"))
  }
}
