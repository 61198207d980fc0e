import NIOCore
import Testing

@testable import Proxy

/// The frames that a connection may send about nothing.
struct FrameBudgetTests {
  /// PRIORITY, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, ALTSVC, ORIGIN, PRIORITY_UPDATE, and one of an unknown type.
  private static let overhead: [UInt8] = [2, 4, 6, 7, 8, 10, 12, 16, 0x42]

  private static func take(_ budget: inout FrameBudget, _ kind: UInt8, _ count: Int, at seconds: Int64) -> Int
  {
    (0..<count).count { _ in budget.take(kind, now: .uptimeNanoseconds(0) + .seconds(seconds)) }
  }

  @Test(arguments: overhead) func `overhead frames are limited, and allowed again after a while`(kind: UInt8)
  {
    var budget = FrameBudget(max: 30)
    #expect(Self.take(&budget, kind, 100, at: 1) == 30)
    #expect(Self.take(&budget, kind, 100, at: 2) == 1)
    #expect(Self.take(&budget, kind, 100, at: 12) == 10)
    #expect(Self.take(&budget, kind, 100, at: 1000) == 30)
  }

  @Test(arguments: [0, 1, 3, 9] as [UInt8]) func `frames of requests are not limited`(kind: UInt8) {
    var budget = FrameBudget(max: 1)
    #expect(Self.take(&budget, kind, 1000, at: 1) == 1000)
  }

  @Test func `responses and requests allow for some overhead`() {
    var budget = FrameBudget(max: 1)
    budget.sent(10)
    #expect(Self.take(&budget, 8, 100, at: 1) == 3)
    // Eight parts for the stream, and for the connection.
    budget.sent(16 << 10)
    #expect(Self.take(&budget, 8, 100, at: 1) == 10)
    #expect(Self.take(&budget, FrameKind.headers, 1, at: 1) == 1)
    #expect(Self.take(&budget, 16, 100, at: 1) == 4)
  }

  @Test func `the credit has an upper bound`() {
    var budget = FrameBudget(max: 1)
    for _ in 0..<100_000 { budget.sent(1) }
    #expect(Self.take(&budget, 8, 100_000, at: 1) == 50_001)
  }
}

struct AllowanceTests {
  @Test func `a larger beginning is used up once`() {
    var allowance = Allowance(30, initial: 100)
    let take = { (count: Int, seconds: Int64) in
      (0..<count).count { _ in allowance.take(.uptimeNanoseconds(0) + .seconds(seconds)) }
    }
    #expect(take(90, 1) == 90)
    // The rest of the beginning is less than time fills.
    #expect(take(200, 1000) == 30)
    #expect(take(200, 1001) == 1)
    #expect(take(200, 5000) == 30)
  }
}
