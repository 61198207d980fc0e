import Logging
import HTTPTypes
import SemelClient

/// A transport that reaches nothing, so that the program needs no HTTP client.
struct NoTransport: Transport {
  func send(
    _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
  ) async throws(TransportError) -> Response {
    throw .notSent("There is no network here.")
  }
}

guard let origin = Origin("https://api.example.com") else { fatalError("The origin is valid.") }
var policy = Policy.standard
policy.call.backoff.max = .zero
let client = IntentClient(
  origin: origin, transport: NoTransport(), policy: policy, logger: Logger(label: "alone"))
do {
  _ = try await client.send(Intent(.delete("/v1/orders/1")))
} catch {
  print(error)
}
