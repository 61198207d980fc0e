import Dispatch
import Glibc
import NIOCore
import Platform
import TestSupport
import Testing

@testable import Proxy

/// Threads that are held up stand for bodies that take long to be read.
struct BodyThreadsTests {
  /// More than the threads of a lane.
  private static let many = 8

  /// The sizes of two bodies of different lanes.
  private static let sizes = [(20 << 10, 2 << 20), (1 << 20, 1 << 20 + 1), (64 << 10, 15 << 20)]

  @Test(arguments: sizes) func `a body does not wait for larger ones`(small: Int, large: Int) async throws {
    let (threads, gate, isRead) = (BodyThreads(), DispatchSemaphore(value: 0), Watched(false))
    for _ in 0..<Self.many { threads.submit(large, to: .larger) { gate.wait() } }
    defer { for _ in 0..<Self.many { gate.signal() } }
    threads.submit(small, to: BodyLane.Kind(ofBody: small)) { isRead.withValue { $0 = true } }
    try await isRead.until("the smaller body") { $0 ? true : nil }
  }

  @Test(arguments: sizes) func `nor on a connection that many clients share`(small: Int, large: Int)
    async throws
  {
    let context = EventLoopContext(loop: realLoop())
    let reader = BodyReader(threads: BodyThreads(), loop: context.loop)
    let connection = ObjectIdentifier(reader)
    let (gate, isRead) = (DispatchSemaphore(value: 0), Watched(false))
    for _ in 0..<Self.many {
      context.task { await reader.read(large, of: connection) { gate.wait() } }
    }
    defer { for _ in 0..<Self.many { gate.signal() } }
    context.task { await reader.read(small, of: connection) { isRead.withValue { $0 = true } } }
    try await isRead.until("the smaller body") { $0 ? true : nil }
  }

  @Test func `a connection's bodies of one lane are read one at a time`() async throws {
    let context = EventLoopContext(loop: realLoop())
    let reader = BodyReader(threads: BodyThreads(), loop: context.loop)
    let (running, ended) = (Watched(0), Watched([Int]()))
    for _ in 0..<Self.many {
      context.task {
        let count = await reader.read(1 << 20, of: ObjectIdentifier(reader)) {
          let count = running.withValue {
            $0 += 1
            return $0
          }
          running.withValue { $0 -= 1 }
          return count
        }
        ended.withValue { $0.append(count) }
      }
    }
    let counts = try await ended.until("all bodies") { $0.count == Self.many ? $0 : nil }
    #expect(counts == Array(repeating: 1, count: Self.many))
  }

  /// The order in which one thread reads bodies that wait for it.
  private func order(of sizes: [Int]) async throws -> [Int] {
    let lane = BodyLane(on: ThreadPool(threads: 1), niceness: 0)
    let (gate, read) = (DispatchSemaphore(value: 0), Watched([Int]()))
    let isHeld = Watched(false)
    lane.submit(1) {
      isHeld.withValue { $0 = true }
      gate.wait()
    }
    defer { gate.signal() }
    try await isHeld.until("the first body") { $0 ? true : nil }
    for size in sizes { lane.submit(size) { read.withValue { $0.append(size) } } }
    gate.signal()
    return try await read.until("all bodies") { $0.count == sizes.count ? $0 : nil }
  }

  @Test func `smaller bodies of a lane go first, equal ones in their order`() async throws {
    #expect(
      try await order(of: [60_000, 2000, 30_000, 2001, 60_001]) == [2000, 2001, 30_000, 60_000, 60_001])
  }

  @Test func `a body is overtaken by a limited number of bytes`() async throws {
    let order = try await order(of: [60_000] + Array(repeating: 20_000, count: 200))
    let place = try #require(order.firstIndex(of: 60_000))
    #expect(0 < place && place < 32 * 60_000 / 20_000)
  }

  /// The nice value of the calling thread.
  private static func ownNiceness() -> Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }

  @Test func `a token waits for no body`() async throws {
    let (threads, gate) = (BodyThreads(), DispatchSemaphore(value: 0))
    let sizes = [40 << 10, 2 << 20]
    for size in sizes {
      for _ in 0..<64 { threads.submit(size, to: BodyLane.Kind(ofBody: size)) { gate.wait() } }
    }
    await withUnsafeContinuation { done in threads.submit(80, to: .tokens) { done.resume() } }
    for _ in 0..<(64 * sizes.count) { gate.signal() }
  }

  @Test(arguments: zip(BodyLane.Kind.allCases, [0, 3, 9] as [Int32]))
  func `threads of larger bodies leave the processors to smaller ones`(
    kind: BodyLane.Kind, expected: Int32
  ) async throws {
    let lane = BodyLane(on: ThreadPool(threads: 1), niceness: kind.niceness)
    let own = Self.ownNiceness()
    let found = Watched<Int32?>(nil)
    lane.submit(1) { found.withValue { $0 = Self.ownNiceness() } }
    let niceness = try await found.until("the thread's nice value") { $0 }
    #expect(niceness == max(own, expected))
    // The thread of a lane, and no other one.
    #expect(Self.ownNiceness() == own)
  }

  @Test func `bodies above a mebibyte have a lane of their own`() {
    #expect([0, 1 << 20].allSatisfy { BodyLane.Kind(ofBody: $0) == .upTo1MiB })
    #expect([1 << 20 + 1, 15 << 20].allSatisfy { BodyLane.Kind(ofBody: $0) == .larger })
  }
}
