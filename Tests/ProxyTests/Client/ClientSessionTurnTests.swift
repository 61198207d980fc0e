import Idempotency
import NIOCore
import NIOEmbedded
import NIOHPACK
import Telemetry
import Testing

@testable import Proxy

/// The turns of the loop in which an HTTP/2 connection handles what it has read.
struct ClientSessionTurnTests {
  private static func requests(_ count: UInt32, _ harness: HTTP2Harness) throws -> [HTTP2TestFrame] {
    try (0..<count).map { try harness.request("GET", on: 2 * $0 + 1) }
  }

  @Test func `one turn handles 64 requests of a read, and the next ones the rest`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    for (turns, count) in [(0, 64), (1, 80)] {
      let frames = turns == 0 ? try Self.requests(80, harness) : []
      try harness.send(frames, turns: Int64(turns))
      #expect(harness.deliveries.count == count)
    }
  }

  /// One entry of the table, named 15 times by a byte each: 60 KB of decoded fields in some 43 bytes.
  @Test func `heads are charged by their decoded bytes, whatever they take on the wire`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    let large = (name: "x-large", value: String(repeating: "a", count: 3900))
    try harness.send(harness.request("GET", on: 1, [large.name: large.value]))
    let fields = HPACKHeaders(Array(repeating: (large.name, large.value), count: 15))
    let frames = try (1...40).map { try harness.request("GET", on: 2 * UInt32($0) + 1, fields) }
    #expect(ByteBuffer(frames).readableBytes < 40 * 64)
    try harness.send(frames, turns: 0)
    // 512 parts; 68 for each, which the streams take by eight.
    #expect(harness.deliveries.count == 1 + 8)
    for turn in 2...5 {
      try harness.send([], turns: 1)
      #expect(harness.deliveries.count == 1 + 8 * turn)
    }
  }

  @Test func `a stream that its client has ended gets no second head`() throws {
    let harness = try HTTP2Harness()
    try harness.send(try Self.requests(1, harness) + Self.requests(1, harness))
    #expect(try harness.received().texts == ["goaway 1 error 5"])
    #expect(!harness.channel.isActive)
  }

  @Test func `a stream below the highest one that was never used is none that ended`() throws {
    let harness = try HTTP2Harness()
    try harness.send(try harness.request("GET", on: 5), try harness.request("GET", on: 3))
    #expect(try harness.received().texts.contains("goaway 5 error 1"))
  }

  @Test func `the end of the input waits for the requests before it`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    try harness.send(try Self.requests(80, harness), turns: 0)
    harness.endInput()
    #expect(try harness.received().isEmpty && harness.channel.isActive)
    try harness.send([])
    #expect(harness.deliveries.count == 80)
    #expect(try harness.received().texts.last == "goaway 159 error 0")
  }

  @Test func `what a closed connection has left over is dropped`() throws {
    let harness = try HTTP2Harness()
    try harness.send(try Self.requests(80, harness), turns: 0)
    harness.close()
    harness.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(harness.deliveries.count == 64)
  }

  /// A channel whose write fails reads what its socket still holds, within that write.
  @Test func `bytes that are read while a broken connection is closed do no harm`() throws {
    let harness = try HTTP2Harness()
    defer { harness.close() }
    let update = HTTP2TestFrame(.windowUpdate, 0, ByteBuffer(repeating: 0, count: 3))
    harness.flushes.readInFlush = ByteBuffer(Array(repeating: .ping(2), count: 100))
    try? harness.send(.ping(1), update, .ping(3))
    #expect(harness.flushes.readInFlush == nil)
    #expect(!harness.channel.isActive)
    #expect(try harness.received().texts.contains("goaway 0 error 6"))
  }

  @Test func `frames that the codec keeps for a body that nobody takes count as memory`() throws {
    var limits = LimitSettings()
    limits.bodyMemory = 1 << 20
    let harness = try HTTP2Harness(limits: limits)
    defer { harness.close() }
    try harness.send(harness.request("POST", on: 1, isEnd: false))
    // The head and the stream are no part of what one connection may hold.
    let head = harness.counters[.bodyBytes]
    // The stream is read until it holds this much, and not further.
    for size in [16 << 10, 16 << 10, 16 << 10, 16 << 10, 6 << 10] {
      try harness.send(.data(1, size))
      _ = try harness.received()
    }
    let held = harness.counters[.bodyBytes]
    #expect((64 << 10..<70 << 10).contains(held - head))
    // An eighth of the memory is for one connection, and a frame takes 256 bytes. The upload has left some.
    let room = ((128 << 10) + head - held) / 256
    try harness.send(Array(repeating: .data(1, 1), count: room - 10))
    #expect(try harness.received().isEmpty)
    #expect(harness.counters[.bodyBytes] > 120 << 10)
    try harness.send(Array(repeating: .data(1, 1), count: 11))
    #expect(try harness.received().texts == ["1 reset 11"])
    #expect(harness.channel.isActive)
    #expect(harness.counters[.bodyBytes] <= held)
  }
}
