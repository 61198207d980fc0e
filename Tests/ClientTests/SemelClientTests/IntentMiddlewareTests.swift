import ClientTestSupport
import Foundation
import HTTPTypes
import SemelClient
import Synchronization
import Testing

/// A body that can be read once, as those of streams.
private final class OnceBody: MiddlewareBody {
  struct WasRead: Error {}

  private let unread: Mutex<[UInt8]?>

  init(_ bytes: [UInt8]) { unread = Mutex(bytes) }

  func bytes(upTo maxBytes: Int) throws -> [UInt8] {
    guard
      let bytes = unread.withLock({ bytes in
        defer { bytes = nil }; return bytes
      })
    else { throw WasRead() }
    return bytes
  }

  static func body(of bytes: [UInt8]) -> OnceBody { OnceBody(bytes) }
}

struct IntentMiddlewareTests {
  private struct Broken: Error {}

  private let post = HTTPRequest(
    method: .post, scheme: nil, authority: nil, path: "/v1/orders", headerFields: [.authorization: "Bearer t"]
  )

  /// Sends a request through the middleware to ends as listed, and returns what was sent.
  private func send(
    _ request: HTTPRequest, _ ends: [Result<Response, Broken>]
  ) async throws -> (status: Int, sent: [(HTTPRequest, [UInt8])]) {
    let sent = Mutex<[(HTTPRequest, [UInt8])]>([])
    let middleware = IntentMiddleware<OnceBody>(environment: .test(TestClock()))
    let url = try #require(URL(string: "https://api.example.com:8443/base"))
    let (head, _) = try await middleware.intercept(
      request, body: OnceBody([1, 2]), baseURL: url, operationID: "createOrder"
    ) { request, body, baseURL in
      #expect(baseURL == url)
      let bytes = try body?.bytes(upTo: 100) ?? []
      let count = sent.withLock { sent in
        sent.append((request, bytes))
        return sent.count
      }
      let response = try ends[min(count, ends.count) - 1].get()
      return (response.head, OnceBody(response.body))
    }
    return (head.status.code, sent.withLock { $0 })
  }

  @Test func `a body that can be read once is sent with each delivery, under one key`() async throws {
    let (status, sent) = try await send(post, [.failure(Broken()), .success(.replayed(201))])
    #expect(status == 201)
    #expect(sent.map(\.1) == [[1, 2], [1, 2]])
    #expect(Set(sent.map { $0.0.headerFields[.idempotencyKey] }).count == 1)
    #expect(sent.allSatisfy { $0.0.headerFields[.authorization] == "Bearer t" && $0.0.scheme == nil })
  }

  @Test func `a key that the application has stored is kept`() async throws {
    var request = post
    request.headerFields[.idempotencyKey] = "order-17"
    let (_, sent) = try await send(request, [.success(.executed(201))])
    #expect(sent.map { $0.0.headerFields[.idempotencyKey] } == ["order-17"])
  }

  @Test func `a quoted key is kept as it is, and one that is none is refused, not replaced`() async throws {
    var request = post
    request.headerFields[.idempotencyKey] = "\"order-17\""
    let (_, sent) = try await send(request, [.failure(Broken()), .success(.executed(201))])
    #expect(sent.map { $0.0.headerFields[.idempotencyKey] } == ["\"order-17\"", "\"order-17\""])
    for key in ["", "\"", "\"\"", "a b", "\"a\"b\""] {
      request.headerFields[.idempotencyKey] = key
      await #expect(throws: CallError.invalidRequest("\(key) cannot be the key of an intent.")) {
        try await send(request, [.success(.executed(201))])
      }
    }
  }

  @Test func `calls through one middleware share a refresh`() async throws {
    let tokens = RotatingTokens()
    tokens.expire()
    let middleware = IntentMiddleware<OnceBody>(credentials: tokens, environment: .test(TestClock()))
    let url = try #require(URL(string: "https://api.example.com"))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<50 {
        group.addTask { [post] in
          let (head, _) = try await middleware.intercept(
            post, body: OnceBody([1]), baseURL: url, operationID: "createOrder"
          ) { request, _, _ in
            await Task.yield()
            let isValid = tokens.isValid(request.headerFields[.authorization])
            return (HTTPResponse(status: isValid ? .created : .unauthorized), nil)
          }
          return head.status.code
        }
      }
      for try await status in group { #expect(status == 201) }
    }
    #expect(tokens.refreshes == 1)
  }

  @Test func `a call that nobody knows the outcome of says so, with its key`() async throws {
    var request = post
    request.headerFields[.idempotencyKey] = "order-17"
    let key = try #require(IntentKey("order-17"))
    await #expect(throws: UnknownOutcome(key: key, problem: nil)) {
      try await send(request, [.failure(Broken())])
    }
  }

  @Test func `a refusal that stays for now is the call's response`() async throws {
    let (status, sent) = try await send(post, [.success(Response(429))])
    #expect(status == 429)
    #expect(sent.count == 5)
  }

  @Test func `a safe method is passed through`() async throws {
    var request = post
    request.method = .get
    let (status, sent) = try await send(request, [.success(Response(503))])
    #expect(status == 503)
    #expect(sent.count == 1)
    #expect(sent[0].0.headerFields[.idempotencyKey] == nil)
  }
}
