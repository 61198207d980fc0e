import ClientTestSupport
import CoreMetrics
import HTTPTypes
import MetricsTestKit
import SemelClient
import Testing

struct ClientMetricsTests {
  private let factory = TestMetrics()

  private func client(
    _ ends: [Result<Response, TransportError>], budgets: RetryBudgets = RetryBudgets()
  ) -> IntentClient {
    IntentClient(
      origin: .example, transport: ScriptedServer(ends), budgets: budgets,
      metrics: ClientMetrics(factory: factory), environment: .test(TestClock()))
  }

  private func send(_ client: IntentClient) async throws -> Outcome {
    try await client.send(Intent(IntentRequest(method: .post, path: "/v1/orders")))
  }

  private func attempts(_ deliveryClass: DeliveryClass) throws -> Int64 {
    try factory.expectCounter("semel_client_attempts_total", [("class", deliveryClass.rawValue)]).totalValue
  }

  private func dropped(_ reason: String) throws -> Int64 {
    try factory.expectCounter("semel_client_dropped_total", [("reason", reason)]).totalValue
  }

  @Test func `each delivery counts under the class of its end, and a replay as one`() async throws {
    _ = try await send(
      client([.failure(.notSent("")), .failure(.lost("")), .success(.replayed(201))]))
    for deliveryClass in DeliveryClass.allCases {
      let isSeen = [.notSent, .unknown, .success].contains(deliveryClass)
      #expect(try attempts(deliveryClass) == (isSeen ? 1 : 0))
    }
    #expect(try factory.expectCounter("semel_client_replays_total").totalValue == 1)
  }

  @Test func `the time to a success contains the waits before it`() async throws {
    let busy = Response.problem(503, "overloaded", isRetryable: true, ["Retry-After": "30"])
    _ = try await send(client([.success(busy), .success(.executed(201))]))
    let values = try factory.expectTimer("semel_client_success_seconds").values
    #expect(values.count == 1 && values.allSatisfy { $0 >= 30_000_000_000 })
  }

  @Test func `intents without a success count under their reason`() async throws {
    _ = try await send(client([.success(.executed(422))]))
    #expect(try dropped("rejected") == 1)
    let unsettled = Response.problem(409, "outcome_unknown", isRetryable: false)
    _ = try await send(client([.success(unsettled)]))
    #expect(try dropped("unknown") == 1)
    _ = try? await send(client([.failure(.notSent(""))]))
    #expect(try dropped("attempts") == 1)
    _ = try? await send(client([.failure(.notSent(""))], budgets: RetryBudgets(.bucket(capacity: 0))))
    #expect(try dropped("budget") == 1)
  }

  @Test func `a cancelled call counts as cancelled if nothing was sent`() async throws {
    let client = client([.success(.executed(201))])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await send(client)
    }
    _ = await task.result
    #expect(try dropped("cancelled") == 1)
    #expect(try attempts(.success) == 0)
  }
}
