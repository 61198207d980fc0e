import Idempotency
import Platform
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

/// The same on the sockets of a pool.
struct CallerShareTests {
  /// A server that responds to `POST /quick` at once, and to nothing else.
  private static func quickServer() throws -> RawServer {
    try RawServer { connection in
      while try connection.readRequest().hasPrefix("POST /quick") {
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      }
      connection.readToEnd()
    }
  }

  @Test(arguments: [1, 3, 4, 8])
  func `a caller leaves a quarter of four connections and more to the others`(limit: Int) async throws {
    let most = limit - limit / 4
    let server = try Self.quickServer()
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.maxConnections = limit
      func begin(_ target: String, of caller: Int?) -> HTTPExchange {
        harness.upstream.begin(.to(upstream, "POST", target, permit: .fresh(), caller: caller))
      }
      let slow = (0..<limit + 2).map { _ in begin("/slow", of: 1) }
      await server.reached { $0.requests == most }
      if most < limit {
        // They overtake those of the caller that wait.
        for (number, caller) in [2, nil, 2].enumerated() {
          #expect(try await begin("/quick", of: caller).finish().status == 200)
          #expect(server.tally.requests == most + number + 1)
        }
      }
      // The end of one makes room for the next one of its caller.
      let before = server.tally.requests
      slow[0].close()
      await server.reached { $0.requests == before + 1 }
      for exchange in slow { exchange.close() }
      #expect(try await begin("/quick", of: 1).finish().status == 200)
    }
  }

  @Test func `a caller with many requests leaves the next connections to those with few`() async throws {
    let server = try Self.quickServer()
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.maxConnections = 16
      func begin(_ target: String, of caller: Int) -> HTTPExchange {
        harness.upstream.begin(.to(upstream, "POST", target, permit: .fresh(), caller: caller))
      }
      let others = (10..<15).map { begin("/slow", of: $0) }
      let many = (0..<20).map { _ in begin("/slow", of: 1) }
      // Of sixteen, five have others, and four are left.
      await server.reached { $0.requests == 12 }
      many[0].close()
      await server.reached { $0.requests == 13 }
      for caller in 20..<23 { #expect(try await begin("/quick", of: caller).finish().status == 200) }
      #expect(server.tally.requests == 16)
      for exchange in others + many { exchange.close() }
    }
  }

  @Test func `a caller leaves one of the connections that requests without protection leave`() async throws {
    let server = try Self.quickServer()
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.maxConnections = 8
      let silent = (0..<8).map { [upstream] _ in harness.upstream.begin(.to(upstream)) }
      await server.reached { $0.requests == 6 }
      let slow = (0..<3).map { [upstream] _ in
        harness.upstream.begin(.to(upstream, "POST", "/slow", permit: .fresh(), caller: 1))
      }
      await server.reached { $0.requests == 7 }
      let quick = harness.upstream.begin(.to(upstream, "POST", "/quick", permit: .fresh(), caller: 2))
      #expect(try await quick.finish().status == 200)
      #expect(server.tally.requests == 8)
      for exchange in silent + slow { exchange.close() }
    }
  }

  @Test func `a request that waits for others of its caller is refused as busy`() async throws {
    let server = try RawServer { $0.readToEnd() }
    try await Harness.run { harness async throws in
      var upstream = UpstreamSettings.loopback(server.port)
      upstream.maxConnections = 4
      upstream.connectTimeout = 50
      let slow = (0..<4).map { [upstream] _ in
        harness.upstream.begin(.to(upstream, "POST", permit: .fresh(), caller: 1))
      }
      await #expect(throws: UpstreamFailure.busy("no connection was free within 50 ms")) {
        try await slow[3].head(within: nil)
      }
      for exchange in slow { exchange.close() }
    }
  }
}
