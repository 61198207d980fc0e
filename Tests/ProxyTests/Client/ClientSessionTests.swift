import Idempotency
import NIOCore
import NIOEmbedded
import NIOHPACK
import Telemetry
import Testing
import Wire

@testable import Proxy

/// The handlers of an HTTP/2 connection on an embedded channel: its end, and its defence against floods.
struct ClientSessionTests {
  private static let maxID = "goaway \(UInt32.max >> 1) error 0"

  @Test func `draining an idle connection closes it once the client has confirmed`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    harness.downstream.drain()
    harness.downstream.drain()
    #expect(try harness.received().texts == [Self.maxID, "ping"])
    #expect(harness.channel.isActive)
    try harness.send(.ping(0, isAcknowledgement: true))
    #expect(try harness.received().texts == ["goaway 0 error 0"])
    #expect(!harness.channel.isActive)
    #expect(harness.downstream.connections.isEmpty)
  }

  /// A socket that is found to be closed as soon as it is written to.
  private final class ClosedSocket: ChannelOutboundHandler {
    typealias OutboundIn = IOData

    func flush(context: ChannelHandlerContext) { context.close(promise: nil) }
  }

  @Test func `a connection that ends while its handlers are added leaves nothing behind`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    let loop = harness.channel.embeddedEventLoop
    let channel = EmbeddedChannel(handler: ClosedSocket(), loop: loop)
    try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait()
    let peer = ClientPeer(address: "192.0.2.1")
    try ClientSession.start(on: channel, downstream: harness.downstream, peer: peer)
    #expect(!channel.isActive)
    loop.run()
    #expect(harness.downstream.connections.count == 1)
  }

  @Test func `a stream that is opened before the client has confirmed the announcement is served`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    harness.downstream.drain()
    #expect(try harness.received().texts == [Self.maxID, "ping"])
    try harness.send(harness.request("POST", on: 1, isEnd: false))
    let delivery = try #require(harness.deliveries.first)
    try harness.send(.ping(0, isAcknowledgement: true))
    #expect(try harness.received().texts == ["goaway 1 error 0"])
    try harness.send(.data(1, 3, isEnd: true))
    #expect(delivery.wholeBody?.readableBytes == 3 && delivery.isConnected)
    try harness.respond(to: 0, ByteBuffer(string: "body"))
    #expect(try harness.received().texts == ["1 status 200", "1 data 4 end", "goaway 1 error 0"])
    #expect(!harness.channel.isActive)
  }

  @Test func `streams above the last one that was named are refused, and those below go on`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("POST", on: 1, isEnd: false))
    harness.downstream.drain()
    try harness.send(.ping(0, isAcknowledgement: true))
    #expect(try harness.received().texts == [Self.maxID, "ping", "goaway 1 error 0"])
    try harness.send(
      harness.request("POST", on: 3, isEnd: false), .data(3, 5), harness.request("GET", on: 5),
      .data(1, 2))
    // The rest of a refused body was under way.
    try harness.send(.data(3, 5, isEnd: true), .data(1, 1, isEnd: true))
    #expect(try harness.received().texts == ["3 reset 7", "5 reset 7"])
    #expect(harness.deliveries.count == 1 && harness.deliveries.first?.wholeBody?.readableBytes == 3)
    try harness.respond(to: 0)
    #expect(try harness.received().texts == ["1 status 200 end", "goaway 1 error 0"])
    #expect(!harness.channel.isActive)
  }

  @Test func `an error after the end was announced states no more streams than were named`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    harness.downstream.drain()
    try harness.send(.ping(0, isAcknowledgement: true))
    try harness.send(harness.request("GET", on: 3))
    _ = try harness.received()
    try? harness.send(.data(0, 1))
    #expect(try harness.received().texts == ["goaway 1 error 1"])
    #expect(!harness.channel.isActive)
  }

  /// A socket whose buffer is full: what is written stays.
  private final class FullSocket: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    private var promises: [EventLoopPromise<Void>] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      if let promise { promises.append(promise) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
      for promise in promises { promise.fail(ChannelError.eof) }
    }
  }

  @Test func `a client that reads nothing does not keep its connection by that`() throws {
    var limits = LimitSettings()
    limits.writeTimeout = 50
    let harness = try HTTP2Harness(limits: limits)
    defer { harness.close() }
    try harness.channel.pipeline.syncOperations.addHandler(FullSocket(), position: .first)
    // The client's end confirms the GOAWAY.
    harness.endInput()
    #expect(harness.channel.isActive)
    // The time of the timers is the machine's.
    let giveUp = NIODeadline.now() + .seconds(10)
    while harness.channel.isActive, NIODeadline.now() < giveUp {
      harness.channel.embeddedEventLoop.advanceTime(to: .now())
    }
    #expect(!harness.channel.isActive)
  }

  @Test func `a half-close of an idle connection closes it at once`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    harness.endInput()
    #expect(try harness.received().texts == [Self.maxID, "ping", "goaway 0 error 0"])
    #expect(!harness.channel.isActive)
  }

  @Test func `a client that goes away leaves its deliveries`() throws {
    let harness = try HTTP2Harness()
    try harness.send(harness.request("GET", on: 1), harness.request("POST", on: 3, isEnd: false))
    #expect(harness.downstream.connections.values.first?.deliveries.count == 2)
    harness.close()
    #expect(harness.deliveries.count == 2 && harness.deliveries.allSatisfy { !$0.isConnected })
    #expect(harness.deliveries.map { $0.bodyFailure?.status } == [nil, 400])
    #expect(harness.downstream.connections.isEmpty)
  }

  /// As many fields of 4,000 bytes. HPACK sends the repetitions in one byte each.
  private static func large(_ count: Int) -> HPACKHeaders {
    HPACKHeaders(Array(repeating: ("x", String(repeating: "a", count: 4000)), count: count))
  }

  @Test func `a client need not know the server's settings to send a large head`() throws {
    let harness = try HTTP2Harness(acknowledges: false)
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1, Self.large(6)))
    #expect(harness.deliveries.count == 1)
    // It gets one SETTINGS frame and the acknowledgement of its own.
    #expect(harness.preface.texts == ["settings", "settings"])
    #expect(harness.preface.map { $0.payload.readableBytes } == [18, 0])
    try harness.send(HTTP2TestFrame(.settings, flags: 1))
    try harness.send(harness.request("GET", on: 3, Self.large(6)))
    #expect(harness.deliveries.count == 2)
    #expect(harness.channel.isActive)
  }

  @Test(arguments: [false, true])
  func `a head between the limit and twice as much gets 431, and one beyond ends the connection`(
    acknowledges: Bool
  ) throws {
    var limits = LimitSettings()
    limits.headerBytes = 16 << 10
    let harness = try HTTP2Harness(limits: limits, acknowledges: acknowledges)
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1, Self.large(6)))
    #expect(try harness.received().first?.text == "1 status 431")
    #expect(harness.deliveries.isEmpty && harness.channel.isActive)
    try? harness.send(harness.request("GET", on: 3, Self.large(12)))
    #expect(try harness.received().contains { $0.isOf(.goAway) })
    #expect(!harness.channel.isActive)
  }

  @Test func `the table of fields is no larger than by default, whatever the client permits`() throws {
    var limits = LimitSettings()
    limits.headerBytes = 16 << 10
    let harness = try HTTP2Harness(limits: limits)
    defer { harness.close() }
    let setting = ByteBuffer(bytes: [0, 1, 0xFF, 0xFF, 0xFF, 0xFF])
    try harness.send(HTTP2TestFrame(.settings, 0, setting))
    try harness.send(harness.request("GET", on: 1, Self.large(6)))
    // The decoder takes no table beyond the default.
    #expect(try harness.received().contains { $0.text == "1 status 431" })
  }

  @Test func `settings that bind the client count once it has acknowledged them`() throws {
    var limits = LimitSettings()
    limits.http2MaxStreams = 1
    let harness = try HTTP2Harness(limits: limits, acknowledges: false)
    defer { harness.close() }
    // It does not know yet that there may be only one stream.
    try harness.send(harness.request("GET", on: 1), harness.request("GET", on: 3))
    #expect(try harness.received().texts == ["3 reset 7"])
    #expect(harness.deliveries.count == 1 && harness.channel.isActive)
  }

  @Test(arguments: [false, true])
  func `a stream too many is refused, and the others go on`(acknowledges: Bool) throws {
    let harness = try HTTP2Harness(acknowledges: acknowledges)
    defer { harness.close() }
    // The client learns the limit, and not the codec's.
    let setting = harness.preface.first?.payload.getBytes(at: 0, length: 6)
    #expect(setting == [0, 3, 0, 0, 0, 100])
    let requests = try (0..<150).map { try harness.request("GET", on: UInt32(2 * $0 + 1)) }
    try harness.send(requests)
    #expect(try harness.received().texts == (100..<150).map { "\(2 * $0 + 1) reset 7" })
    #expect(harness.deliveries.count == 100 && harness.deliveries.allSatisfy { $0.isConnected })
    for index in 0..<100 { try harness.respond(to: index) }
    for delivery in harness.deliveries { delivery.runEnded() }
    #expect(try harness.received().filter(\.isEnd).count == 100)
    try harness.send(harness.request("GET", on: 301))
    #expect(harness.deliveries.count == 101 && harness.channel.isActive)
  }

  @Test func `the bodies of many refused uploads end nothing`() throws {
    var limits = LimitSettings()
    limits.http2MaxStreams = 10
    let harness = try HTTP2Harness(limits: limits, acknowledges: false)
    defer { harness.close() }
    let streams = (0..<100).map { UInt32(2 * $0 + 1) }
    try harness.send(try streams.map { try harness.request("POST", on: $0, isEnd: false) })
    #expect(try harness.received().texts == streams.dropFirst(10).map { "\($0) reset 7" })
    // They were under way when the client learnt of that.
    try harness.send(streams.map { HTTP2TestFrame.data($0, 10) })
    #expect(harness.channel.isActive && harness.deliveries.count == 10)
    #expect(harness.deliveries.allSatisfy { $0.isConnected })
  }

  @Test func `the responses to one read leave in one flush`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    harness.downstream.start = { $0.respond(with: ClientResponse(.requestTimeout)) }
    let requests = try (0..<20).map { try harness.request("GET", on: UInt32(2 * $0 + 1)) }
    let before = harness.flushes.count
    try harness.send(requests)
    #expect(harness.flushes.count == before + 1)
    #expect(try harness.received().filter(\.isEnd).count == 20)
  }
}

// Errors of clients.
extension ClientSessionTests {
  @Test func `a broken protocol ends the connection, and the last stream is stated`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1), harness.request("GET", on: 3))
    // Bytes of a body belong to a stream.
    try? harness.send(.data(0, 1))
    let goAway = try harness.received().first { $0.isOf(.goAway) }
    #expect(goAway?.text == "goaway 3 error 1")
    #expect(!harness.channel.isActive)
    #expect(harness.deliveries.allSatisfy { !$0.isConnected })
  }

  /// A socket that is closed within a read completes none.
  @Test func `a connection that ends within a read leaves nothing behind`() throws {
    weak var session: ClientSession?
    do {
      let harness = try HTTP2Harness()
      session = harness.session
      let frames = [try harness.request("GET", on: 1), HTTP2TestFrame.windowUpdate(0, 0)]
      harness.channel.pipeline.fireChannelRead(ByteBuffer(frames))
      harness.channel.embeddedEventLoop.run()
      #expect(!harness.channel.isActive && harness.deliveries.count == 1)
      harness.close()
    }
    #expect(session == nil)
  }

  @Test(arguments: [
    // The connection's window grows by nothing, or beyond its maximum.
    (HTTP2TestFrame.windowUpdate(0, 0), "goaway 1 error 1"),
    (.windowUpdate(0, UInt32.max >> 1), "goaway 1 error 3"),
    // A stream that nobody has opened.
    (.windowUpdate(9, 1), "goaway 1 error 1"), (.data(9, 1), "goaway 1 error 1"),
  ])
  func `an error of the connection ends it`(_ frame: HTTP2TestFrame, _ end: String) throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    try? harness.send(frame)
    #expect(try harness.received().texts == [end])
    #expect(!harness.channel.isActive && harness.deliveries.first?.isConnected == false)
  }

  @Test func `a flood of useless frames ends the connection, and the last stream is stated`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    try harness.send(Array(repeating: HTTP2TestFrame(.unknown), count: ConnectionLimits.http2ControlFrames))
    #expect(harness.channel.isActive)
    try harness.send(Array(repeating: HTTP2TestFrame(.unknown), count: 20))
    #expect(try harness.received().texts == ["goaway 1 error 11"])
    #expect(!harness.channel.isActive)
    #expect(harness.deliveries.first?.isConnected == false)
  }

  @Test func `each PING is acknowledged once, with and without credit`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    try harness.respond(to: 0)
    _ = try harness.received()
    // One frame was sent, so that the guard acknowledges the first and the codec the other two.
    try harness.send(.ping(1), .ping(2), .ping(3))
    let pongs = try harness.received()
    #expect(pongs.texts == ["pong", "pong", "pong"])
    #expect(pongs.map { $0.payload } == [1, 2, 3].map { ByteBuffer(integer: UInt64($0)) })
  }
}
