import ClientTestSupport
import Foundation
import HTTPTypes
import SemelClient
import Synchronization
import Testing

/// A source whose tokens are numbered, and whose refresh makes the token before it invalid.
final class RotatingTokens: CredentialSource {
  private let state = Mutex((token: 0, refreshes: 0, running: 0, mostAtOnce: 0))

  var refreshes: Int { state.withLock { $0.refreshes } }
  var mostAtOnce: Int { state.withLock { $0.mostAtOnce } }
  var isValid: @Sendable (String?) -> Bool {
    { [self] field in field == "Bearer \(state.withLock { $0.token })" }
  }

  func expire() { state.withLock { $0.token += 1 } }

  func current() async -> HTTPFields { [.authorization: "Bearer 0"] }

  func refresh(refused: HTTPFields) async -> HTTPFields {
    state.withLock { state in
      state.running += 1
      state.mostAtOnce = max(state.mostAtOnce, state.running)
    }
    for _ in 0..<100 { await Task.yield() }
    return state.withLock { state in
      state.running -= 1
      state.refreshes += 1
      state.token += 1
      return [.authorization: "Bearer \(state.token)"]
    }
  }
}

struct CredentialTests {
  private func server(_ tokens: RotatingTokens) -> ScriptedServer {
    ScriptedServer { (request, _) in
      await Task.yield()
      return tokens.isValid(request.headerFields[.authorization]) ? .executed(201) : Response(401)
    }
  }

  private func intent(_ number: Int) -> Intent {
    Intent(IntentRequest(method: .post, path: "/v1/orders/\(number)"))
  }

  @Test func `credentials are applied when a delivery is sent, in the place of older ones`() async throws {
    let tokens = RotatingTokens()
    let server = server(tokens)
    let client = IntentClient(
      origin: .example, transport: server, credentials: tokens, environment: .test(TestClock()))
    _ = try await client.send(intent(1))
    #expect(server.requests.map { $0.headerFields[values: .authorization] } == [["Bearer 0"]])
  }

  @Test
  func `a hundred calls with a dead token need one refresh, and each keeps its key and costs no attempt`()
    async throws
  {
    let tokens = RotatingTokens()
    tokens.expire()
    let server = server(tokens)
    var policy = Policy.standard
    policy.call.maxAttempts = 1
    let client = IntentClient(
      origin: .example, transport: server, policy: policy, credentials: tokens,
      environment: .test(TestClock()))
    try await withThrowingTaskGroup(of: Outcome.self) { group in
      for number in 0..<100 { group.addTask { [self] in try await client.send(intent(number)) } }
      for try await outcome in group { #expect(outcome == .completed(.executed(201), wasReplayed: false)) }
    }
    #expect(tokens.refreshes == 1)
    #expect(tokens.mostAtOnce == 1)
    let keysOfPaths = Dictionary(grouping: server.requests, by: { $0.path ?? "" })
      .mapValues { Set($0.map { $0.headerFields[.idempotencyKey] }) }
    #expect(keysOfPaths.values.allSatisfy { $0.count == 1 })
  }

  @Test func `tokens that die under load are refreshed one at a time, and no call fails`() async throws {
    let tokens = RotatingTokens()
    let server = ScriptedServer { (request, _) in
      await Task.yield()
      guard tokens.isValid(request.headerFields[.authorization]) else { return Response(401) }
      if request.path?.hasSuffix("50") == true { tokens.expire() }
      return .executed(201)
    }
    let client = IntentClient(
      origin: .example, transport: server, credentials: tokens, environment: .test(TestClock()))
    try await withThrowingTaskGroup(of: Outcome.self) { group in
      for number in 0..<400 { group.addTask { [self] in try await client.send(intent(number)) } }
      for try await outcome in group { #expect(outcome == .completed(.executed(201), wasReplayed: false)) }
    }
    #expect(tokens.mostAtOnce <= 1)
    #expect(tokens.refreshes <= 4)
  }

  @Test func `a server that refuses every token is asked five times within thirty seconds`() async throws {
    let tokens = RotatingTokens()
    let server = ScriptedServer([.success(Response(401))])
    let client = IntentClient(
      origin: .example, transport: server, credentials: tokens, environment: .test(TestClock()))
    for number in 0..<10 {
      await #expect(throws: CallError.credentials(.refused)) { try await client.send(intent(number)) }
    }
    #expect(tokens.refreshes == 5)
  }

  @Test func `a refresh that fails ends the calls that wait for it, and a later one tries again`()
    async throws
  {
    struct SignedOut: Error {}
    final class Source: CredentialSource {
      let refreshes = Mutex(0)
      func current() async -> HTTPFields { [.authorization: "Bearer dead"] }
      func refresh(refused: HTTPFields) async throws -> HTTPFields {
        if refreshes.withLock({ count in
          count += 1; return count
        }) == 1 {
          throw SignedOut()
        }
        return [.authorization: "Bearer new"]
      }
    }
    let server = ScriptedServer { (request, _) in
      request.headerFields[.authorization] == "Bearer new" ? .executed(200) : Response(401)
    }
    let client = IntentClient(
      origin: .example, transport: server, credentials: Source(), environment: .test(TestClock()))
    await #expect(throws: CallError.credentials(.unavailable("SignedOut()"))) {
      try await client.send(intent(1))
    }
    #expect(try await client.send(intent(1)) == .completed(.executed(200), wasReplayed: false))
  }
}
