import Foundation
import HTTPTypes
import SemelClient
import Testing

#if ASYNC_HTTP_CLIENT
  import AsyncHTTPClient
  import SemelAsyncHTTPClient
#endif

/// The behaviour that every transport has to show.
struct TransportConformanceTests {
  // Responses

  /// The response to a request whose server sends these bytes. There was one request.
  private func response(
    _ kind: TransportKind, _ bytes: String, method: HTTPRequest.Method = .post, maxResponseBody: Int = 1000
  ) async throws -> Response {
    let listener = try Listener(sending: bytes)
    defer { listener.stop() }
    let response = try await kind.send(to: listener.port, method: method, maxResponseBody: maxResponseBody)
    #expect(listener.received.count == 1)
    return response
  }

  @Test(arguments: TransportKind.allCases)
  func `a response has its status, fields and body`(kind: TransportKind) async throws {
    let response = try await response(
      kind, "HTTP/1.1 201 Created\r\nX-Mark: a\r\nX-Mark: b\r\nContent-Length: 2\r\n\r\n{}")
    #expect(response.status.code == 201 && response.body == [0x7B, 0x7D])
    let mark = try #require(HTTPField.Name("X-Mark"))
    #expect(response.fields[mark] == "a, b")
  }

  @Test(arguments: TransportKind.allCases)
  func `a body ends with its length, its last chunk, or its connection`(kind: TransportKind) async throws {
    for rest in [
      "Content-Length: 2\r\n\r\n{}", "\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ] {
      #expect(
        try await response(kind, "HTTP/1.1 200 OK\r\n\(rest)", maxResponseBody: 2).body == [0x7B, 0x7D])
    }
    let head = try await response(kind, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", method: .head)
    #expect(head.status.code == 200 && head.body.isEmpty)
    #expect(try await response(kind, "HTTP/1.1 204 No Content\r\n\r\n").status.code == 204)
  }

  @Test(arguments: TransportKind.allCases.filter(\.takesTrailers))
  func `trailers are no part of the fields`(kind: TransportKind) async throws {
    let response = try await response(
      kind,
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Mark\r\n\r\n2\r\n{}\r\n0\r\nX-Mark: a\r\n\r\n"
    )
    let mark = try #require(HTTPField.Name("X-Mark"))
    #expect(response.body == [0x7B, 0x7D] && response.fields[mark] == nil)
  }

  @Test(arguments: TransportKind.allCases, ["Location: /other\r\n", ""])
  func `a redirect is a response, and is not followed`(kind: TransportKind, place: String) async throws {
    for status in [301, 302, 303, 307, 308] {
      let response = try await response(
        kind, "HTTP/1.1 \(status) Elsewhere\r\n\(place)Content-Length: 2\r\n\r\n{}")
      #expect(response.status.code == status)
      #expect(place.isEmpty || response.body == [0x7B, 0x7D])
    }
  }

  @Test(
    arguments: TransportKind.allCases,
    [#"Basic realm="a""#, #"Digest realm="a", nonce="b""#, "Bearer", #"Bearer realm="a""#])
  func `a demand for credentials is a response`(kind: TransportKind, challenge: String) async throws {
    let response = try await response(
      kind, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: \(challenge)\r\nContent-Length: 2\r\n\r\n{}")
    #expect(response.status.code == 401 && response.body == [0x7B, 0x7D])
  }

  @Test(arguments: TransportKind.allCases)
  func `an early hint is no response, and the one after it is`(kind: TransportKind) async throws {
    let response = try await response(
      kind, "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
    #expect(response.status.code == 201 && response.body == [0x7B, 0x7D])
  }

  // Requests

  @Test(
    arguments: TransportKind.allCases,
    ["/v1/orders?a=%2F&b=c+d;e", "/a%2Fb//c", "//double", "/a?", "/{semel}"])
  func `a request is sent as it is`(kind: TransportKind, path: String) async throws {
    let listener = try Listener(sending: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    defer { listener.stop() }
    _ = try await kind.send(to: listener.port, path)
    let request = try #require(listener.received.first)
    let fields = request.components(separatedBy: "\r\n").map { $0.lowercased() }
    let sent = path == "/{semel}" ? "/%7Bsemel%7D" : path
    #expect(request.hasPrefix("POST \(sent) HTTP/1.1\r\n"))
    #expect(fields.filter { $0.hasPrefix("idempotency-key:") } == ["idempotency-key: order-17"])
    #expect(fields.filter { $0.hasPrefix("content-type:") } == ["content-type: application/json"])
    #expect(fields.filter { $0.hasPrefix("content-length:") } == ["content-length: 1"])
    #expect(request.hasSuffix("\r\n\r\n1"))
  }

  @Test(arguments: TransportKind.allCases, ["v1/orders", "@127.0.0.1/", ""])
  func `a path that would name another server is not sent`(kind: TransportKind, path: String) async throws {
    let listener = try Listener(sending: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    defer { listener.stop() }
    #expect(await kind.isUnsent(to: listener.port, path) == true)
    #expect(listener.received.isEmpty)
  }

  // Failures

  @Test(arguments: TransportKind.allCases)
  func `a connection that is refused, or is none of TLS, was not used`(kind: TransportKind) async throws {
    let listener = try Listener(sending: "")
    listener.stop()
    #expect(await kind.isUnsent(to: listener.port) == true)
    // A connection that is closed with bytes unread is reset, which says less.
    let plain = try Listener(
      .init(readsRequest: false, bytes: "HTTP/1.1 400 Bad Request\r\n\r\n", isHeld: true))
    defer { plain.stop() }
    #expect(await kind.isUnsent(to: plain.port, scheme: "https") == kind.knowsFailuresOfTLS)
  }

  @Test(
    arguments: TransportKind.allCases,
    [
      "", "hello\r\n\r\n", "HTTP/1.1 201 Cr", "HTTP/1.1 100 Continue\r\n\r\n",
      "HTTP/1.1 201 Created\r\nContent-Length: 20\r\n\r\n{}",
      "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    ])
  func `a connection that ends without a whole response may have been carried out`(
    kind: TransportKind, bytes: String
  ) async throws {
    let listener = try Listener(sending: bytes)
    defer { listener.stop() }
    #expect(await kind.isUnsent(to: listener.port) == false)
    #expect(listener.received.count == 1)
  }

  @Test(
    arguments: TransportKind.allCases,
    ["Content-Length: 2\r\n\r\n{}", "\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"])
  func `a response that is too large is lost`(kind: TransportKind, rest: String) async throws {
    let listener = try Listener(sending: "HTTP/1.1 201 Created\r\n\(rest)")
    defer { listener.stop() }
    #expect(await kind.isUnsent(to: listener.port, maxResponseBody: 1) == false)
  }

  // Time

  /// The beginnings of a response that does not come to its end.
  private static let beginnings = [
    "", "HTTP/1.1 201 Cr", "HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\n{}",
  ]

  @Test(arguments: TransportKind.allCases, beginnings)
  func `a server that stops in its response is lost when the time is over`(
    kind: TransportKind, bytes: String
  ) async throws {
    let listener = try Listener(.init(bytes: bytes, isHeld: true))
    defer { listener.stop() }
    // Foundation's own time is a minute, and AsyncHTTPClient has none.
    let time = await ContinuousClock().measure {
      #expect(await kind.isUnsent(to: listener.port, timeout: .milliseconds(300)) == false)
    }
    #expect(time >= .milliseconds(300) && time < .seconds(55))
  }

  @Test(arguments: TransportKind.allCases)
  func `a time without an end is one`(kind: TransportKind) async throws {
    let listener = try Listener(sending: "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
    defer { listener.stop() }
    let response = try await kind.send(to: listener.port, timeout: .seconds(Int64.max))
    #expect(response.status.code == 201)
  }

  @Test(arguments: TransportKind.allCases, beginnings)
  func `an exchange whose task is cancelled is lost at once`(kind: TransportKind, bytes: String) async throws
  {
    let listener = try Listener(.init(bytes: bytes, isHeld: true))
    defer { listener.stop() }
    let exchange = Task { await kind.isUnsent(to: listener.port, timeout: .seconds(3600)) }
    var requests = listener.requests.makeAsyncIterator()
    _ = await requests.next()
    exchange.cancel()
    #expect(await exchange.value == false)
  }

  @Test(arguments: TransportKind.allCases)
  func `exchanges that are cancelled while they end, end once each`(kind: TransportKind) async throws {
    let listener = try Listener(sending: "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")
    defer { listener.stop() }
    let transport = kind.transport
    for _ in 0..<20 {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<10 { group.addTask { _ = try? await kind.send(to: listener.port, on: transport) } }
        // The first end cancels the others, wherever they are.
        await group.next()
        group.cancelAll()
      }
    }
    #expect(try await kind.send(to: listener.port, on: transport).status.code == 201)
  }

  #if ASYNC_HTTP_CLIENT
    @Test func `the response behind a redirect, which a client follows by mistake, is lost`() async throws {
      let listener = try Listener(sending: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      let first = try Listener(
        sending:
          "HTTP/1.1 303 Elsewhere\r\nLocation: http://127.0.0.1:\(listener.port)/\r\nContent-Length: 0\r\n\r\n"
      )
      defer {
        listener.stop()
        first.stop()
      }
      let client = HTTPClient(eventLoopGroupProvider: .singleton)
      let request = HTTPRequest(
        method: .post, scheme: "http", authority: "127.0.0.1:\(first.port)", path: "/")
      await #expect(throws: TransportError.lost("The client has followed a redirect.")) {
        try await AsyncHTTPClientTransport(client: client).send(
          request, body: [1], timeout: .seconds(20), maxResponseBody: 1000)
      }
      try await client.shutdown()
    }

    @Test func `a request to a client that was shut down is not sent`() async throws {
      let client = HTTPClient(eventLoopGroupProvider: .singleton)
      try await client.shutdown()
      let request = HTTPRequest(method: .post, scheme: "http", authority: "127.0.0.1:1", path: "/")
      let end = await #expect(throws: TransportError.self) {
        try await AsyncHTTPClientTransport(client: client).send(
          request, body: [1], timeout: .seconds(20), maxResponseBody: 1000)
      }
      #expect(end.map { if case .notSent = $0 { true } else { false } } == true)
    }
  #endif
}
