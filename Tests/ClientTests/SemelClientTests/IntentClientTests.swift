import ClientTestSupport
import Foundation
import HTTPTypes
import SemelClient
import Synchronization
import Testing

struct IntentClientTests {
  private let intent = Intent(IntentRequest(method: .post, path: "/v1/orders", body: .bytes([1, 2])))

  private func client(
    _ server: ScriptedServer, clock: TestClock = TestClock(), policy: Policy = .standard,
    credentials: (any CredentialSource)? = nil
  ) -> IntentClient {
    IntentClient(
      origin: .example, transport: server, policy: policy, credentials: credentials, environment: .test(clock)
    )
  }

  @Test func `every delivery of an intent has the same key, path and bytes`() async throws {
    let server = ScriptedServer([.failure(.lost("")), .failure(.notSent("")), .success(.replayed(201))])
    let outcome = try await client(server).send(intent)
    #expect(outcome == .completed(.replayed(201), wasReplayed: true))
    #expect(server.keys == Array(repeating: intent.key.rawValue, count: 3))
    #expect(server.bodies == [[1, 2], [1, 2], [1, 2]])
    #expect(Set(server.requests.map(\.path)) == ["/v1/orders"])
  }

  @Test func `the key goes under each name that the policy gives`() async throws {
    let server = ScriptedServer([.success(.executed(200))])
    var policy = Policy.standard
    policy.keyFields = [.idempotencyKey, .clientRequestID]
    _ = try await client(server, policy: policy).send(intent)
    #expect(server.requests.first?.headerFields[.clientRequestID] == intent.key.rawValue)
    #expect(server.requests.first?.headerFields[.idempotencyKey] == intent.key.rawValue)
  }

  @Test func `pauses between deliveries grow, and a wait that the server asked for is obeyed`() async throws {
    let clock = TestClock()
    let busy = Response.problem(503, "overloaded", isRetryable: true, ["Retry-After": "2"])
    let server = ScriptedServer([.failure(.notSent("")), .success(busy), .success(.executed(200))])
    _ = try await client(server, clock: clock).send(intent)
    // With random bits that are all one, `random % (bound + 1)` is a pause of the bound's residue.
    #expect(clock.sleeps.count == 2)
    #expect(clock.sleeps[0] <= .milliseconds(50))
    #expect((.seconds(2) ... .milliseconds(2100)).contains(clock.sleeps[1]))
  }

  @Test func `a call that never reached the server fails with the certainty that nothing was carried out`()
    async
  {
    let server = ScriptedServer([.failure(.notSent("refused"))])
    await #expect(throws: CallError.notExecuted(nil)) { try await client(server).send(intent) }
    #expect(server.requests.count == 5)
  }

  @Test func `a call whose responses were lost is unknown, never failed`() async throws {
    #expect(try await client(ScriptedServer([.failure(.lost(""))])).send(intent) == .unknown(nil))
  }

  @Test func `when a host's budget is used up, a call fails at its first failure`() async throws {
    let budgets = RetryBudgets(.bucket(capacity: 14))
    let server = ScriptedServer([.failure(.notSent(""))])
    let client = IntentClient(
      origin: .example, transport: server, budgets: budgets, environment: .test(TestClock()))
    await #expect(throws: CallError.budgetExhausted(nil)) { try await client.send(intent) }
    await #expect(throws: CallError.budgetExhausted(nil)) { try await client.send(intent) }
    #expect(server.requests.count == 3)
  }

  @Test func `a credential in the request is refused before anything is sent`() async {
    let server = ScriptedServer([.success(.executed(200))])
    let request = IntentRequest(method: .post, path: "/", fields: [.authorization: "Bearer t"])
    await #expect(throws: CallError.self) { try await client(server).send(Intent(request)) }
    #expect(server.requests.isEmpty)
  }

  @Test func `a body's file is read for each delivery, and one that is missing ends the call`() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path()
    try Data([7, 8]).write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let server = ScriptedServer([.failure(.lost("")), .success(.replayed(200))])
    _ = try await client(server).send(Intent(IntentRequest(method: .put, path: "/f", body: .file(path))))
    #expect(server.bodies == [[7, 8], [7, 8]])
    let missing = Intent(IntentRequest(method: .put, path: "/f", body: .file(path + "-missing")))
    await #expect(throws: CallError.self) { try await client(server).send(missing) }
    #expect(server.bodies.count == 2)
  }

  @Test func `a cancelled call whose delivery was under way is unknown`() async throws {
    let (sent, sending) = AsyncStream.makeStream(of: Void.self)
    let server = ScriptedServer { (_, _) async throws(TransportError) in
      sending.yield()
      try? await Task.sleep(for: .seconds(3600))
      throw .lost("cancelled")
    }
    let call = Task { [intent] in try await client(server).send(intent) }
    var iterator = sent.makeAsyncIterator()
    await iterator.next()
    call.cancel()
    #expect(try await call.value == .unknown(nil))
    #expect(server.requests.count == 1)
  }

  @Test func `a call that is cancelled before its first delivery sends nothing`() async {
    let server = ScriptedServer([.success(.executed(200))])
    let call = Task { [intent] in
      withUnsafeCurrentTask { $0?.cancel() }
      return try await client(server).send(intent)
    }
    await #expect(throws: CallError.cancelled) { try await call.value }
    #expect(server.requests.isEmpty)
  }

  @Test func `the outcome of an intent is asked for by its key, without sending it`() async throws {
    let server = ScriptedServer { (request, _) in
      let isReplay = request.path?.contains("response=true") == true
      return isReplay
        ? .replayed(201, "7") : Response(200, [:], #"{"state":"completed","status":201,"attempt":1}"#)
    }
    let state = try await client(server).state(of: intent, attach: .seconds(5))
    #expect(state == .completed(status: 201, .replayed(201, "7")))
    #expect(
      server.requests.first?.path
        == "/.well-known/idempotency/outcome?method=POST&path=%2Fv1%2Forders&attach=5s")
    #expect(server.keys == [intent.key.rawValue, intent.key.rawValue])
    #expect(server.requests.allSatisfy { $0.method == .get })
  }

  @Test(arguments: [
    ("absent", RecordState.absent), ("in_flight", .inFlight), ("released", .released), ("unknown", .unknown),
    ("expired", .expired),
  ])
  func `each state of a record is reported`(name: String, state: RecordState) async throws {
    let server = ScriptedServer([.success(Response(200, [:], #"{"state":"\#(name)","attempt":1}"#))])
    #expect(try await client(server).state(of: intent) == state)
  }

  @Test func `a server without an outcome endpoint refuses the question`() async {
    let server = ScriptedServer([.success(Response(404))])
    await #expect(throws: InquiryError.refused(Response(404))) { try await client(server).state(of: intent) }
  }

  @Test(arguments: ["v1/orders", "@example.org/", ""])
  func `a path that would name another server is not sent`(path: String) async {
    let server = ScriptedServer([.success(.executed(200))])
    await #expect(throws: CallError.invalidRequest("The path \(path) does not begin with a slash.")) {
      try await client(server).send(Intent(IntentRequest(method: .post, path: path)))
    }
    #expect(server.requests.isEmpty)
  }
}
