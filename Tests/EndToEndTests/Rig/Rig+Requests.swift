import TestSupport

extension Rig {
  /// The fields of a keyed request by the usual caller; `key` nil: without a key.
  static func fields(key: String?, caller: String = "Bearer alice") -> [(String, String)] {
    [("Authorization", caller), ("Content-Type", "application/json")]
      + (key.map { [("Idempotency-Key", $0)] } ?? [])
  }

  /// Places an order: `POST /v1/orders`.
  func order(
    _ key: String?, body: String = #"{"amount":1999}"#, caller: String = "Bearer alice",
    path: String = "/v1/orders",
    _ more: [(String, String)] = [], at node: SemelProcess? = nil, within span: Duration = .seconds(20)
  ) async throws -> ReceivedResponse {
    try await (node ?? semel).client.send(
      "POST", path, Self.fields(key: key, caller: caller) + more, body: body, within: span)
  }

  /// The same request by bytes, for a connection that the test holds.
  static func orderText(
    _ key: String?, body: String = #"{"amount":1999}"#, path: String = "/v1/orders",
    _ more: [(String, String)] = []
  ) -> String {
    HTTPClient.request("POST", path, fields(key: key) + more, body: body)
  }

  /// Delivers the same order again and again until its response is what the test waits for.
  func order(
    _ key: String, at node: SemelProcess? = nil, within span: Duration = .seconds(20),
    until isReached: (ReceivedResponse) -> Bool
  ) async throws -> ReceivedResponse {
    try await Self.repeated(within: span, until: isReached) { try await order(key, at: node) }
  }

  /// Sends the same request again and again until its response is what the test waits for.
  static func repeated(
    within span: Duration = .seconds(20), until isReached: (ReceivedResponse) -> Bool,
    _ send: () async throws -> ReceivedResponse
  ) async throws -> ReceivedResponse {
    let deadline = ContinuousClock.now + span
    while true {
      let response = try await send()
      if isReached(response) { return response }
      guard ContinuousClock.now < deadline else {
        throw TestFailure(
          "after \(span) the response is still \(response.status) \(response.fields) \(response.text)")
      }
      try await Task.sleep(for: .milliseconds(50))
    }
  }
}
