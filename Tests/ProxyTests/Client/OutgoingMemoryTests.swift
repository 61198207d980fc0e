import Idempotency
import Logging
import NIOCore
import NIOEmbedded
import Platform
import Telemetry
import Testing
import Wire

@testable import Proxy

/// The memory of responses that wait for their clients, without a connection.
struct OutgoingMemoryTests {
  /// The clients' side of a loop, of whose memory one connection may take a mebibyte.
  private struct Loop {
    static let part = 1 << 20
    let downstream: Downstream

    init() {
      var limits = LimitSettings()
      limits.bodyMemory = 8 * Self.part
      let metrics = Metrics(loops: 1)
      downstream = Downstream(
        context: EventLoopContext(loop: EmbeddedEventLoop()),
        environment: ProxyEnvironment(counters: metrics.counters, logger: Logger(label: "test")),
        configuration: ConfigurationSnapshot(
          routes: RouteTable([]), fallback: nil, limits: limits,
          accessLog: AccessLog(sink: LogSink(), format: .json, isEnabled: false),
          trustedProxies: TrustedProxies(), unmatchedKeys: .pass, passesUnderscores: false),
        metrics: metrics.loops[0])
    }

    /// The bytes that all connections hold.
    var bytes: Int { downstream.environment.counters[.bodyBytes] }

    func connection() -> ConnectionMemory { ConnectionMemory(on: downstream) }
  }

  private static let recordedAt = StoreInstant(milliseconds: 1000)

  @Test func `one response may be larger than a connection's part, and the next finds no memory`() {
    let loop = Loop()
    let connection = loop.connection()
    var first = OutgoingMemory(of: connection)
    let isCounted = first.count(2 * Loop.part, beside: 0)
    #expect(isCounted && first.heldBytes == 2 * Loop.part && loop.bytes == 2 * Loop.part)
    var second = OutgoingMemory(of: connection)
    let isTaken = second.take(1, beside: 0)
    #expect(!isTaken && second.heldBytes == 0)
    let isLargeCounted = second.count(5000, beside: 0)
    #expect(!isLargeCounted && second.heldBytes == 0)
    first.drop()
    #expect(first.heldBytes == 0 && loop.bytes == 0)
    let isCountedNow = second.count(5000, beside: 0)
    #expect(isCountedNow && second.heldBytes == 5000)
  }

  @Test func `no replay begins while responses that wait hold a half, but others' responses come through`() {
    let loop = Loop()
    var responses = (0..<4).map { _ in OutgoingMemory(of: loop.connection()) }
    for index in responses.indices {
      let isCounted = responses[index].count(Loop.part, beside: 0)
      #expect(isCounted)
    }
    let connection = loop.connection()
    #expect(!connection.mayReadAhead && connection.hasRoom(beside: 0))
    var next = OutgoingMemory(of: connection)
    let body = ByteBuffer(repeating: 7, count: Loop.part)
    let areLetIn = [true, false].map {
      next.admit(body, recordedAt: Self.recordedAt, isShared: $0, beside: 0)
    }
    #expect(areLetIn == [false, false] && loop.bytes == 4 * Loop.part)
    let isCounted = next.count(Loop.part, beside: 0)
    #expect(isCounted && loop.connection().take(Loop.part, beside: 0))
    #expect(!loop.connection().take(Loop.part, beside: 0) && !connection.hasRoom(beside: 0))
    next.drop()
    responses[0].drop()
    #expect(connection.mayReadAhead && loop.downstream.environment.counters[.unreadBytes] == 3 * Loop.part)
  }

  @Test func `a small response never meets the limits`() {
    let connection = Loop().connection()
    var large = OutgoingMemory(of: connection)
    _ = large.count(2 * Loop.part, beside: 0)
    var small = OutgoingMemory(of: connection)
    #expect(OutgoingMemory.isSmall(4096) && !OutgoingMemory.isSmall(4097))
    let isCounted = small.count(4096, beside: 0)
    #expect(isCounted && small.heldBytes == 4096)
    let isCountedBeyond = small.count(4097, beside: 0)
    #expect(!isCountedBeyond && small.heldBytes == 4096)
  }

  @Test func `the body of the request beside it is no reason to refuse a response`() {
    let connection = Loop().connection()
    let isTaken = connection.take(2 * Loop.part, beside: 0)
    var memory = OutgoingMemory(of: connection)
    let isOthers = memory.take(5000, beside: 0)
    let isOwn = memory.take(5000, beside: 2 * Loop.part)
    #expect(isTaken && !isOthers && isOwn)
  }

  @Test func `memory is given back as the client takes its response`() {
    let loop = Loop()
    var memory = OutgoingMemory(of: loop.connection())
    for waiting in [100_000, 60_000, 60_000, 0] {
      let isCounted = memory.count(waiting, beside: 0)
      #expect(isCounted && memory.heldBytes == waiting && loop.bytes == waiting)
    }
  }

  @Test func `a recorded body is held once for all that read it`() throws {
    let loop = Loop()
    let bodies = (0..<2).map { _ in ByteBuffer(repeating: 7, count: Loop.part) }
    var first = OutgoingMemory(of: loop.connection())
    var second = OutgoingMemory(of: loop.connection())
    #expect(first.countsBody)
    let areAdmitted = [
      first.admit(bodies[0], recordedAt: Self.recordedAt, isShared: true, beside: 0),
      second.admit(bodies[1], recordedAt: Self.recordedAt, isShared: true, beside: 0),
    ]
    #expect(areAdmitted == [true, true])
    #expect(!first.countsBody && first.heldBytes == 0 && loop.bytes == Loop.part)
    let addresses = try [first.sharedBytes, second.sharedBytes].map {
      try #require($0).withUnsafeReadableBytes { $0.baseAddress }
    }
    #expect(addresses[0] == addresses[1])
    first.leaveBody()
    first.leaveBody()
    #expect(first.countsBody && loop.bytes == Loop.part)
    second.drop()
    #expect(loop.bytes == 0)
  }

  @Test func `a recorded body without memory is left as it was`() {
    let loop = Loop()
    let connection = loop.connection()
    var large = OutgoingMemory(of: connection)
    _ = large.count(Loop.part, beside: 0)
    var memory = OutgoingMemory(of: connection)
    let body = ByteBuffer(repeating: 7, count: Loop.part / 2)
    for isShared in [true, false] {
      let isAdmitted = memory.admit(body, recordedAt: Self.recordedAt, isShared: isShared, beside: 0)
      #expect(!isAdmitted && !memory.isAdmitted && memory.countsBody && loop.bytes == Loop.part)
    }
  }

  @Test func `a piece of an admitted response goes out although no memory is left`() {
    let loop = Loop()
    let connection = loop.connection()
    var large = OutgoingMemory(of: connection)
    _ = large.count(Loop.part, beside: 0)
    var memory = OutgoingMemory(of: connection)
    let isTakenBefore = memory.take(64 << 10, beside: 0)
    #expect(!isTakenBefore && memory.heldBytes == 0)
    memory.isAdmitted = true
    let isTaken = memory.take(64 << 10, beside: 0)
    #expect(isTaken && memory.heldBytes == 64 << 10 && loop.bytes == Loop.part + (64 << 10))
    memory.drop()
    #expect(loop.bytes == Loop.part)
  }
}
