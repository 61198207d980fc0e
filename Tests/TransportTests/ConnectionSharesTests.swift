import Idempotency
import TestSupport
import Testing

@testable import Transport

/// The parts of a pool that callers leave to one another.
struct ConnectionSharesTests {
  private static func request(of caller: Int?, isProtected: Bool = true) -> UpstreamRequest {
    .to(.loopback(1), "POST", permit: isProtected ? .fresh() : nil, caller: caller)
  }

  /// Takes up connections until none is left to the request; returns their number.
  private static func fill(_ shares: inout ConnectionShares, with request: UpstreamRequest, of free: Int)
    -> Int
  {
    var count = 0
    while count < free, shares.leaveOne(to: request) {
      shares.change(request, by: 1)
      count += 1
    }
    return count
  }

  @Test(arguments: [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (8, 6), (16, 12), (256, 192)])
  func `one caller alone takes three quarters of four connections and more`(limit: Int, most: Int) {
    var shares = ConnectionShares(of: limit)
    #expect(Self.fill(&shares, with: Self.request(of: 1), of: limit) == most)
    // Another one begins, and each that ends makes room.
    if most < limit { #expect(shares.leaveOne(to: Self.request(of: 2))) }
    shares.change(Self.request(of: 1), by: -1)
    #expect(shares.leaveOne(to: Self.request(of: 1)))
  }

  @Test func `a caller with few takes the last ones`() {
    var shares = ConnectionShares(of: 16)
    #expect(Self.fill(&shares, with: Self.request(of: 1), of: 16) == 12)
    #expect(Self.fill(&shares, with: Self.request(of: 2), of: 4) == 2)
    #expect(Self.fill(&shares, with: Self.request(of: nil), of: 2) == 2)
  }

  @Test func `what requests without protection leave is parted in the same way`() {
    var shares = ConnectionShares(of: 16)
    #expect(Self.fill(&shares, with: Self.request(of: nil, isProtected: false), of: 16) == 12)
    #expect(Self.fill(&shares, with: Self.request(of: 1), of: 4) == 3)
    #expect(shares.leaveOne(to: Self.request(of: 2)))
  }
}
