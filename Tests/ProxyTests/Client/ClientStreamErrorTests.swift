import Idempotency
import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP2
import Telemetry
import Testing
import Wire

@testable import Proxy

/// Streams that end before their requests and responses have, on an embedded channel: by their client's reset, or by an
/// error that concerns them alone.
struct ClientStreamErrorTests {
  private static let window = 65_535

  private static func limits(maxStreams: Int) -> LimitSettings {
    var limits = LimitSettings()
    limits.http2MaxStreams = maxStreams
    return limits
  }
}

// Streams that their clients reset in the read that has opened them.
extension ClientStreamErrorTests {
  private static let policy: RoutePolicy = {
    var policy = RoutePolicy(
      name: "orders", match: RouteMatch(),
      upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none")))
    policy.caller = CallerPolicy(parts: [])
    return policy
  }()

  /// The part of a request that comes before the reset.
  enum Part: CaseIterable {
    /// A head without a body. It is claimed before the reset is read.
    case onlyHead
    /// A head that a body should follow.
    case openHead
    case halfBody
    case wholeBody

    var isWhole: Bool { self == .onlyHead || self == .wholeBody }
  }

  private static func request(on stream: UInt32, _ part: Part, _ harness: HTTP2Harness) throws
    -> [HTTP2TestFrame]
  {
    let fields: HPACKHeaders = ["idempotency-key": "k-\(stream)", "content-type": "application/json"]
    let head = try harness.request("POST", on: stream, fields, isEnd: part == .onlyHead)
    switch part {
    case .onlyHead, .openHead: return [head]
    case .halfBody: return [head, .data(stream, 3)]
    case .wholeBody: return [head, .data(stream, 3, isEnd: true)]
    }
  }

  @Test(arguments: Part.allCases)
  func `a stream that is reset in its first read has an end, and frees its slot with it`(_ part: Part) throws
  {
    let harness = try HTTP2Harness(limits: Self.limits(maxStreams: 1))
    defer { harness.close() }
    try harness.send(Self.request(on: 1, part, harness) + [.resetStream(1)])
    let delivery = try #require(harness.deliveries.first)
    #expect(delivery.isStarted && !delivery.isConnected)
    #expect(delivery.bodyFailure?.status == (part.isWhole ? nil : 400))
    #expect((delivery.wholeBody != nil) == part.isWhole)
    try harness.send(harness.request("GET", on: 3))
    #expect(try harness.received().texts == ["3 reset 7"])
    delivery.runEnded()
    #expect(harness.counters[.bodyBytes] == 0)
    try harness.send(harness.request("GET", on: 5))
    #expect(harness.deliveries.count == 2 && harness.channel.isActive)
  }

  @Test(arguments: Part.allCases)
  func `a request that is reset in its first read runs if it is whole, and is refused if not`(_ part: Part)
    throws
  {
    let harness = try HTTP2Harness(limits: Self.limits(maxStreams: 1), routes: [Self.policy])
    defer { harness.close() }
    let (store, backend) = (ScriptedStore(loop: harness.channel.embeddedEventLoop), ScriptedBackend())
    store.onClaim = { .success(.granted($0.granted)) }
    harness.run(with: store, backend)
    let runs = part.isWhole ? 1 : 0
    try harness.send(Self.request(on: 1, part, harness) + [.resetStream(1)])
    #expect(store.claims.count == runs && backend.requests.count == runs && store.completions.count == runs)
    #expect(harness.counters[.inFlight] == 0 && harness.counters[.bodyBytes] == 0)
    #expect(harness.deliveries.first?.logEntry.hungUp == true)
    // The slot is free.
    try harness.send(Self.request(on: 3, .wholeBody, harness))
    #expect(try harness.received().texts.first == "3 status 201 end")
    #expect(backend.requests.count == runs + 1 && harness.counters[.inFlight] == 0)
  }

  @Test func `a stream that ends before its first read has ended starts no run, and frees its slot`() throws {
    let harness = try HTTP2Harness(limits: Self.limits(maxStreams: 1))
    defer { harness.close() }
    let channel = EmbeddedChannel(loop: harness.channel.embeddedEventLoop)
    try channel.syncOptions?.setOption(HTTP2StreamChannelOptions.streamID, value: 1)
    let stream = ClientStream(of: try #require(harness.session))
    try channel.pipeline.syncOperations.addHandler(stream)
    let fields: HPACKHeaders = [":method": "GET", ":scheme": "http", ":authority": "a", ":path": "/"]
    channel.pipeline.fireChannelRead(
      HTTP2Frame.FramePayload.headers(.init(headers: fields, endStream: true)))
    let delivery = try #require(stream.delivery)
    channel.pipeline.fireChannelInactive()
    channel.pipeline.fireChannelReadComplete()
    #expect(!delivery.isStarted && !delivery.isConnected && harness.deliveries.isEmpty)
    try harness.send(harness.request("GET", on: 3))
    #expect(harness.deliveries.count == 1)
    _ = try? channel.finish(acceptAlreadyClosed: true)
  }
}

// Errors of one stream.
extension ClientStreamErrorTests {
  /// A request's method, a frame that is an error of its stream, and the reset.
  private static let errors: [(String, HTTP2TestFrame, String)] = [
    // The stream's window grows by nothing, or beyond its maximum.
    ("GET", .windowUpdate(1, 0), "1 reset 1"), ("GET", .windowUpdate(1, UInt32.max >> 1), "1 reset 3"),
    ("POST", .windowUpdate(1, 0), "1 reset 1"), ("POST", .windowUpdate(1, UInt32.max >> 1), "1 reset 3"),
    // A body behind the end of the request.
    ("GET", .data(1, 1), "1 reset 5"),
  ]

  @Test(arguments: errors)
  func `an error of one stream resets that stream alone`(
    _ request: String, _ frame: HTTP2TestFrame, _ reset: String
  ) throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(
      harness.request(request, on: 1, isEnd: request == "GET"), harness.request("GET", on: 3))
    // The frames behind it, in the same read, count.
    try harness.send(frame, harness.request("GET", on: 5))
    #expect(try harness.received().texts == [reset])
    #expect(harness.deliveries.map(\.isConnected) == [false, true, true])
    #expect(harness.page.contains("\nsemel_framing_errors_total 1\n"))
    try harness.respond(to: 0)
    try harness.respond(to: 1)
    try harness.respond(to: 2)
    #expect(try harness.received().texts == ["3 status 200 end", "5 status 200 end"])
    #expect(harness.channel.isActive)
  }

  @Test func `a second HEADERS that does not end the request resets its stream alone`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("POST", on: 1, isEnd: false), harness.request("GET", on: 3))
    try harness.send(harness.request("POST", on: 1, isEnd: false))
    #expect(try harness.received().texts == ["1 reset 1"])
    #expect(harness.deliveries.map(\.isConnected) == [false, true])
    try harness.respond(to: 1)
    #expect(try harness.received().texts == ["3 status 200 end"])
  }

  @Test func `a body beyond the window of its stream resets that stream alone`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("POST", on: 1, isEnd: false), harness.request("GET", on: 3))
    var window = ConnectionLimits.http2WindowBytes
    var connectionWindow = Self.window
    try harness.upload(&window, &connectionWindow)
    try harness.send(.data(1, window + 1))
    #expect(try harness.received().texts.contains("1 reset 3"))
    #expect(harness.deliveries.map(\.isConnected) == [false, true])
    try harness.respond(to: 1)
    #expect(try harness.received().texts == ["3 status 200 end"])
    #expect(harness.channel.isActive)
  }

  @Test func `too many errors of streams end the connection`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    var number: UInt32 = 1
    while harness.channel.isActive, number < 2001 {
      try harness.send(harness.request("GET", on: number), .windowUpdate(number, 0))
      for delivery in harness.deliveries { delivery.runEnded() }
      harness.deliveries = []
      number += 2
    }
    #expect(!harness.channel.isActive && number > 100)
    // ENHANCE_YOUR_CALM
    #expect(try harness.received().last?.text == "goaway \(number - 2) error 11")
  }
}
