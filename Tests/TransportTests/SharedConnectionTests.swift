import Idempotency
import NIOCore
import Platform
import TestSupport
import Testing

@testable import Transport

/// The harm that strangers' requests may do to an HTTP/2 backend's connections, and to those whom they share them with: on
/// SwiftNIO's server with its default limits.
struct SharedConnectionTests {
  private static func settings(of server: HTTP2Server) -> UpstreamSettings {
    var settings = UpstreamSettings.loopback(server.port)
    settings.http2 = .priorKnowledge
    return settings
  }

  /// Waits until this many requests have reached the server.
  private static func reached(_ server: HTTP2Server, requests: Int) async throws {
    try await server.tally.until("\(requests) requests") { $0.requests >= requests ? true : nil }
  }

  @Test func `clients that hang up cost no claimed request its response`() async throws {
    let server = try await HTTP2Server()
    let settings = Self.settings(of: server)
    try await Harness.run { harness async throws in
      // A connection ends with its 201st reset.
      for round in 1...8 {
        let claimed = (0..<5).map { _ in
          harness.upstream.begin(
            .to(settings, "POST", body: .whole(ByteBuffer(string: "{}")), permit: .fresh()))
        }
        let abandoned = (0..<60).map { _ in harness.upstream.begin(.to(settings, "GET", "/never")) }
        try await Self.reached(server, requests: 65 * round)
        for exchange in abandoned { exchange.close() }
        for exchange in claimed { #expect(try await exchange.finish().status == 200) }
      }
      // The last ones of a connection may be lost with it.
      try await server.tally.until("the resets, and not \(server.tally.value.resets)") {
        $0.resets.values.reduce(0, +) >= 300 ? true : nil
      }
    }
    #expect(server.tally.value.errors == [])
    #expect(server.tally.value.resets.values.allSatisfy { $0 <= 140 })
  }

  @Test func `a claimed request goes by a connection that no other goes by`() async throws {
    let server = try await HTTP2Server()
    var settings = Self.settings(of: server)
    settings.maxConnections = 1
    let upstream = settings
    try await Harness.run { harness async throws in
      for _ in 1...2 {
        #expect(try await harness.upstream.begin(.to(upstream)).finish().status == 200)
        #expect(
          try await harness.upstream.begin(.to(upstream, "POST", permit: .fresh())).finish().status == 200)
      }
      // The end of one leaves the other alone.
      let claimed = harness.upstream.begin(.to(upstream, "POST", "/later", permit: .fresh()))
      #expect(await harness.upstream.begin(.to(upstream, "POST", "/end")).failure()?.isResponseLost == true)
      #expect(try await claimed.finish().status == 200)
    }
    #expect(server.tally.value.connections == 2)
  }

  @Test func `a slow upload ends for a request of its own kind, and for no claimed one`() async throws {
    let server = try await HTTP2Server()
    var settings = Self.settings(of: server)
    settings.maxConnections = 1
    let upstream = settings
    try await Harness.run { harness async throws in
      #expect(try await harness.upstream.begin(.to(upstream)).finish().status == 200)
      let upload = harness.upstream.begin(
        .to(upstream, "PUT", "/never", body: .streamed(Silence(), length: nil)))
      // Nothing tells that an exchange begins to wait for its client.
      for _ in 0..<2000 where !upload.isHeldUp { await harness.context.sleep(milliseconds: 5) }
      #expect(upload.isHeldUp)
      // The second one waits for the connection of the first.
      let claimed = (0..<2).map { _ in
        harness.upstream.begin(.to(upstream, "POST", permit: .fresh()))
      }
      #expect(upload.failure == nil)
      for exchange in claimed { #expect(try await exchange.finish().status == 200) }
      // With the upload, as many as a connection takes.
      for _ in 0..<99 { _ = harness.upstream.begin(.to(upstream, "GET", "/never")) }
      try await Self.reached(server, requests: 1 + 2 + 99)
      #expect(upload.failure == nil)
      #expect(try await harness.upstream.begin(.to(upstream)).finish().status == 200)
      #expect(upload.failure != nil)
    }
  }

  @Test func `a short response that nobody awaits any more costs no reset, and a long one does`() async throws
  {
    let server = try await HTTP2Server()
    let settings = Self.settings(of: server)
    try await Harness.run { harness async throws in
      for round in 1...5 {
        let abandoned = (0..<50).map { _ in harness.upstream.begin(.to(settings, "GET", "/later")) }
        try await Self.reached(server, requests: 50 * round)
        for exchange in abandoned { exchange.close() }
      }
      #expect(try await harness.upstream.begin(.to(settings)).finish().status == 200)
      let long = harness.upstream.begin(.to(settings, "GET", "/long"))
      _ = try await long.head(within: .seconds(10))
      long.close()
      // The reset comes long before the time that a response may take to end by itself, or with it.
      try await server.tally.until("a reset") { $0.resets.isEmpty ? nil : true }
    }
    // A machine that is busy may have made several connections.
    #expect(server.tally.value.resets.values.reduce(0, +) == 1)
    // A few for 252 requests, however busy the machine is.
    #expect(server.tally.value.connections < 25)
    #expect(server.tally.value.errors == [])
  }

  @Test func `a head that is larger than the backend accepts is not sent`() async throws {
    let server = try await HTTP2Server()
    let settings = Self.settings(of: server)
    try await Harness.run { harness async throws in
      let waiting = harness.upstream.begin(.to(settings, "GET", "/later"))
      // 16 KiB as HTTP/2 counts them, which takes much less on the wire.
      for (size, isAccepted) in [(20_000, false), (15_900, true), (16_384, false)] {
        let fields = "Host: h\r\nX-Large: \(String(repeating: "0", count: size))\r\n"
        for permit in [nil, SendPermit.fresh()] {
          let failure = await harness.upstream.begin(
            .to(settings, "POST", fields: fields, permit: permit)
          ).failure()
          if case .headTooLarge = failure {
            #expect(!isAccepted)
          } else {
            #expect(isAccepted && failure == nil)
          }
          #expect(permit?.isSent ?? isAccepted == isAccepted)
        }
      }
      #expect(try await waiting.finish().status == 200)
    }
    #expect(server.tally.value.errors == [])
  }

  @Test func `many fields count with their overhead`() {
    let lines = (100..<300).map { "X-\($0): abcde\r\n" }.joined()
    let request = UpstreamRequest.to(.loopback(1), "GET", "/", fields: "Host: h\r\n" + lines)
    // Name, value and 32 bytes each.
    #expect(!request.hasHead(within: 200 * (5 + 5 + 32)))
    #expect(request.hasHead(within: 200 * (5 + 5 + 32) + 300))
  }

  @Test func `no request follows one that ended an HTTP 2 connection`() async throws {
    let server = try await HTTP2Server()
    let settings = Self.settings(of: server)
    try await Harness.run { harness async throws in
      #expect(try await harness.upstream.begin(.to(settings)).finish().status == 200)
      #expect(await harness.upstream.begin(.to(settings, "GET", "/end")).failure()?.isResponseLost == true)
    }
    #expect(server.tally.value.requests == 2 && server.tally.value.connections == 1)
  }
}
