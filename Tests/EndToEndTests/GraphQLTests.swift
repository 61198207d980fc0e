import TestSupport
import Testing

/// Routes that protect GraphQL mutations and nothing else.
struct GraphQLTests {
  private static let query = #"{"query":"query Q { cart }"}"#
  private static let mutation = #"{"query":"mutation M { pay }"}"#

  private static func configuration(_ store: StoreKind = .embedded, limit: String = "1MiB") -> Configuration {
    Configuration(
      store: store,
      route: [
        "match": "{methods: [POST], path: /graphql, graphql: mutation}", "max_request_body": limit,
      ])
  }

  private func send(
    _ rig: Rig, _ key: String?, _ body: String, _ more: [(String, String)] = []
  ) async throws -> ReceivedResponse {
    try await rig.order(key, body: body, path: "/graphql", more)
  }

  @Test(arguments: StoreKind.allCases)
  func `mutations are protected, and queries pass`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      let first = try await send(rig, "k", Self.mutation)
      expectExecuted(first)
      expectReplayed(try await send(rig, "k", Self.mutation), of: first)
      expectRefused(try await send(rig, nil, Self.mutation), 400, "key_missing", retryable: false)
      for _ in 1...2 {
        let query = try await send(rig, nil, Self.query)
        #expect(query.status == 201)
        #expect(query.idempotencyStatus == nil)
      }
      #expect(try await send(rig, "k", Self.query).idempotencyStatus == "ignored")
      #expect(rig.backend.requests.map(\.text) == [Self.mutation] + Array(repeating: Self.query, count: 3))
    }
  }

  @Test func `the operation's name selects`() async throws {
    try await Rig.run(Self.configuration()) { rig in
      let both = #"{"query":"query Q { cart } mutation M { pay }","operationName":"#
      #expect(try await send(rig, nil, both + #""Q"}"#).status == 201)
      expectRefused(try await send(rig, nil, both + #""M"}"#), 400, "key_missing", retryable: false)
      expectExecuted(try await send(rig, "k", both + #""M"}"#))
    }
  }

  @Test func `what may be a mutation does not lose its protection`() async throws {
    try await Rig.run(Self.configuration()) { rig in
      for body in ["mutation { pay }", #"{"id":"stored"}"#, "[\(Self.query),\(Self.mutation)]"] {
        expectRefused(try await send(rig, nil, body), 400, "key_missing", retryable: false)
        let first = try await send(rig, "key of \(body.count)".replacing(" ", with: "-"), body)
        expectExecuted(first)
      }
      #expect(try await send(rig, nil, "[\(Self.query),\(Self.query)]").status == 201)
      #expect(rig.backend.requests.count == 4)
    }
  }

  @Test func `a body above the limit is refused, since it may be a mutation's`() async throws {
    try await Rig.run(Self.configuration(limit: "1KiB")) { rig in
      let large = #"{"query":"query Q { cart }","x":"\#(String(repeating: "x", count: 2000))"}"#
      expectRefused(try await send(rig, nil, large), 413, "request_too_large", retryable: false)
      let chunks = "400\r\n" + large.prefix(1024) + "\r\n400\r\n" + large.dropFirst(1024).prefix(900)
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(
        "POST /graphql HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
          + chunks)
      expectRefused(try await connection.response(), 413, "request_too_large", retryable: false)
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test func `large bodies and chunked ones reach the backend whole`() async throws {
    try await Rig.run(Self.configuration()) { rig in
      let filler = String(repeating: "x", count: 200_000)
      let query = #"{"query":"query Q { cart }","x":"\#(filler)"}"#
      #expect(try await send(rig, nil, query).status == 201)
      let mutation = #"{"query":"mutation M { pay }","x":"\#(filler)"}"#
      let first = try await send(rig, "k", mutation)
      expectExecuted(first)
      expectReplayed(try await send(rig, "k", mutation), of: first)
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      let length = String(Self.query.utf8.count, radix: 16)
      try await connection.send(
        "POST /graphql HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
          + "\(length)\r\n\(Self.query)\r\n0\r\n\r\n")
      #expect(try await connection.response().status == 201)
      #expect(rig.backend.requests.map(\.text) == [query, mutation, Self.query])
    }
  }
}
