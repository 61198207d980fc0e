import Idempotency
import NIOCore
import NIOEmbedded
import NIOHPACK
import Platform
import Telemetry
import Testing
import Wire

@testable import Proxy

/// The handler of one HTTP/2 stream on an embedded channel.
struct ClientStreamTests {
  private static func limits(maxStreams: Int) -> LimitSettings {
    var limits = LimitSettings()
    limits.http2MaxStreams = maxStreams
    return limits
  }

  @Test func `a request gets its response, and its stream ends without a reset`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    #expect(harness.deliveries.first?.wholeBody?.readableBytes == 0)
    try harness.respond(to: 0, ByteBuffer(string: "body"))
    #expect(try harness.received().texts == ["1 status 200", "1 data 4 end"])
    #expect(harness.channel.isActive)
  }

  @Test func `a body arrives piece by piece`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("POST", on: 1, isEnd: false), .data(1, 3))
    let delivery = try #require(harness.deliveries.first)
    #expect(delivery.wholeBody == nil)
    try harness.send(.data(1, 2, isEnd: true))
    #expect(delivery.wholeBody == ByteBuffer(string: "xxxxx"))
  }

  @Test func `the streams of one connection get their responses in any order`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1), harness.request("GET", on: 3))
    try harness.respond(to: 1)
    try harness.respond(to: 0)
    #expect(try harness.received().texts == ["3 status 200 end", "1 status 200 end"])
  }

  @Test func `an early response stops the upload`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("POST", on: 1, isEnd: false), .data(1, 3))
    try harness.respond(to: 0, ByteBuffer(string: "no"))
    #expect(try harness.received().texts == ["1 status 200", "1 data 2 end", "1 reset 0"])
    // Frames that were under way are dropped.
    try harness.send(.data(1, 3))
    #expect(harness.channel.isActive)
    #expect(harness.deliveries.first?.logEntry.requestBytes == 3)
  }

  @Test func `a response that was begun and cannot be completed is reset`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    let delivery = try #require(harness.deliveries.first)
    let head = ClientResponseHead(
      source: .backend(MessageHead(start: .status(200, reason: 0..<0)), nil), content: .unknown)
    delivery.begin(head, with: ByteBuffer(string: "half"))
    delivery.abort()
    #expect(try harness.received().texts == ["1 status 200", "1 data 4", "1 reset 2"])
    #expect(!delivery.isConnected)
  }
}

// Malformed requests.
extension ClientStreamTests {
  @Test func `a malformed head gets 400 and a reset, and no delivery`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1, ["connection": "close"]))
    #expect(harness.deliveries.isEmpty)
    let frames = try harness.received()
    #expect(frames.first?.text == "1 status 400" && frames.last?.text == "1 reset 1")
    #expect(!frames.contains { $0.isEnd })
    #expect(harness.channel.isActive)
  }

  @Test func `a body shorter than declared fails, and its stream ends with an error`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(
      harness.request("POST", on: 1, ["content-length": "4"], isEnd: false), .data(1, 3, isEnd: true))
    #expect(harness.deliveries.first?.bodyFailure?.status == 400)
    try harness.respond(to: 0)
    #expect(try harness.received().texts == ["1 status 200", "1 reset 1"])
  }
}

// The slots of a connection.
extension ClientStreamTests {
  @Test func `a complete response frees its slot`() throws {
    let harness = try HTTP2Harness(limits: Self.limits(maxStreams: 1))
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    try harness.respond(to: 0)
    try harness.send(harness.request("GET", on: 3))
    #expect(harness.deliveries.count == 2)
  }

  @Test func `a stream that its client resets keeps its slot until its run ends`() throws {
    let harness = try HTTP2Harness(limits: Self.limits(maxStreams: 1))
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    let delivery = try #require(harness.deliveries.first)
    try harness.send(.resetStream(1))
    #expect(!delivery.isConnected)
    try harness.send(harness.request("GET", on: 3))
    #expect(harness.deliveries.count == 1)
    #expect(try harness.received().texts == ["3 reset 7"])
    delivery.runEnded()
    try harness.send(harness.request("GET", on: 5))
    #expect(harness.deliveries.count == 2)
    // A response that is late for the first is nobody's.
    try harness.respond(to: 0)
    #expect(try harness.received().isEmpty)
  }
}

// The end of the client's sending side.
extension ClientStreamTests {
  @Test func `a half-close amid a body fails it, and its response still leaves`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("POST", on: 1, isEnd: false), .data(1, 3))
    let delivery = try #require(harness.deliveries.first)
    harness.endInput()
    #expect(delivery.bodyFailure?.status == 400)
    #expect(delivery.isHalfClosed && delivery.isConnected)
    _ = try harness.received()
    try harness.respond(to: 0)
    #expect(
      try harness.received().texts == ["1 status 200 end", "1 reset 0", "goaway 1 error 0"])
    #expect(!harness.channel.isActive)
  }

  @Test func `a half-close behind whole requests ends after their responses`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1), harness.request("GET", on: 3))
    harness.endInput()
    #expect(harness.deliveries.allSatisfy { $0.isHalfClosed && $0.bodyFailure == nil && $0.isConnected })
    _ = try harness.received()
    try harness.respond(to: 0)
    #expect(harness.channel.isActive)
    try harness.respond(to: 1)
    #expect(
      try harness.received().texts == ["1 status 200 end", "3 status 200 end", "goaway 3 error 0"])
    #expect(!harness.channel.isActive)
  }
}

// Flow control, and the memory of what waits.
extension ClientStreamTests {
  private static let window = 65_535

  @Test func `a response waits for the windows of its client, and its last frame alone ends the stream`()
    throws
  {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    let size = 200_000
    try harness.send(harness.request("GET", on: 1))
    try harness.respond(to: 0, ByteBuffer(repeating: 0x79, count: size))
    var frames = try harness.received()
    #expect(frames.bodyBytes(of: 1) == Self.window)
    #expect(harness.downstream.hasUnread && harness.counters[.bodyBytes] > 0)
    for increment in [UInt32(100_000), 34_465] {
      try harness.send(.windowUpdate(1, increment), .windowUpdate(0, increment))
      frames += try harness.received()
    }
    #expect(frames.bodyBytes(of: 1) == size)
    #expect(frames.filter(\.isEnd).count == 1 && frames.last?.isEnd == true)
    #expect(!harness.downstream.hasUnread && harness.counters[.bodyBytes] == 0)
  }

  @Test func `a stream whose window is closed holds back no other`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(.windowUpdate(0, 1 << 20), harness.request("GET", on: 1), harness.request("GET", on: 3))
    try harness.respond(to: 0, ByteBuffer(repeating: 0x79, count: 100_000))
    try harness.respond(to: 1, ByteBuffer(repeating: 0x79, count: 1000))
    let frames = try harness.received()
    #expect(frames.bodyBytes(of: 1) == Self.window)
    #expect(frames.contains { $0.text == "3 data 1000 end" })
  }

  @Test func `a reset drops what waits for the client, and gives its memory back`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1))
    try harness.respond(to: 0, ByteBuffer(repeating: 0x79, count: 200_000))
    _ = try harness.received()
    #expect(harness.counters[.bodyBytes] > 0)
    try harness.send(.resetStream(1))
    #expect(harness.counters[.bodyBytes] == 0 && !harness.downstream.hasUnread)
    try harness.send(.windowUpdate(0, 1 << 20))
    #expect(try harness.received().bodyBytes(of: 1) == 0)
  }

  @Test func `responses that nobody takes have a share of the memory, and are reset beyond it`() throws {
    var limits = LimitSettings()
    limits.bodyMemory = 1 << 20
    let harness = try HTTP2Harness(limits: limits)
    defer { harness.close() }
    let noWindow = HTTP2TestFrame(.settings, 0, ByteBuffer(bytes: [0, 4, 0, 0, 0, 0]))
    try harness.send(noWindow)
    try harness.send((0..<20).map { try harness.request("GET", on: 2 * UInt32($0) + 1) })
    for index in 0..<20 { try harness.respond(to: index, ByteBuffer(repeating: 0x79, count: 100)) }
    // A sixteenth of the memory, at 4 KiB for each stream.
    let resets = try harness.received().filter { $0.isOf(.resetStream) }
    #expect(resets.map(\.stream) == [33, 35, 37, 39] && resets.allSatisfy { $0.text.hasSuffix("reset 11") })
    #expect(harness.channel.isActive && harness.downstream.environment.bodyMemory.waiting.taken == 64 << 10)
    try harness.send(HTTP2TestFrame(.settings, 0, ByteBuffer(bytes: [0, 4, 0, 0, 1, 0])))
    #expect(try harness.received().filter { $0.isOf(.data) && $0.isEnd }.count == 16)
    #expect(harness.downstream.environment.bodyMemory.waiting.taken == 0)
    #expect(harness.counters[.bodyBytes] == 0)
  }

  @Test func `a block of fields that does not end has a share of the memory`() throws {
    var limits = LimitSettings()
    limits.bodyMemory = 1 << 20
    let harness = try HTTP2Harness(limits: limits)
    defer { harness.close() }
    let piece = ByteBuffer(repeating: 0, count: 16_000)
    try harness.send(HTTP2TestFrame(.headers, 1, piece))
    try harness.send(HTTP2TestFrame(.continuation, 1, piece))
    #expect(harness.channel.isActive && harness.counters[.bodyBytes] > 60_000)
    try harness.send(HTTP2TestFrame(.continuation, 1, piece))
    #expect(try harness.received().texts.last == "goaway 0 error 11")
    #expect(!harness.channel.isActive && harness.counters[.bodyBytes] == 0)
  }

  @Test func `a response beside one that waits is reset if there is no memory for both`() throws {
    var limits = LimitSettings()
    limits.bodyMemory = 1 << 20
    let harness = try HTTP2Harness(limits: limits)
    defer { harness.close() }
    try harness.send(harness.request("GET", on: 1), harness.request("GET", on: 3))
    try harness.respond(to: 0, ByteBuffer(repeating: 0x79, count: 200_000))
    try harness.respond(to: 1, ByteBuffer(repeating: 0x79, count: 50_000))
    let frames = try harness.received()
    #expect(frames.contains { $0.text == "3 reset 11" })
    #expect(!frames.contains { $0.isOf(.resetStream) && $0.stream == 1 })
    #expect(harness.channel.isActive)
  }

  @Test func `a body that nobody takes is held back, until somebody does`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(harness.request("POST", on: 1, isEnd: false))
    let delivery = try #require(harness.deliveries.first)
    var window = ConnectionLimits.http2WindowBytes
    var connectionWindow = Self.window
    try harness.upload(&window, &connectionWindow)
    #expect(window <= 0 && connectionWindow > 0)
    let held = delivery.logEntry.requestBytes
    #expect((64 << 10...96 << 10).contains(held))
    harness.downstream.context.task { _ = try? await delivery.next() }
    harness.channel.embeddedEventLoop.run()
    let frames = try harness.received()
    #expect(frames.windowIncrement(of: 1) > 0)
    window += frames.windowIncrement(of: 1)
    connectionWindow += frames.windowIncrement(of: 0)
    try harness.upload(&window, &connectionWindow)
    #expect(delivery.logEntry.requestBytes > held)
  }
}
