import TestSupport
import Testing

/// Batches of which another delivery has an item by the time their response comes.
extension BatchTests {
  /// The response that came late, or its loss, for a batch of which one item's record belongs to another by then.
  @Test(arguments: StoreKind.allCases, [(true, true), (true, false), (false, true), (false, false)])
  func `a late response is recorded only for the items that are still the batch's own`(
    store: StoreKind, late: (otherHasEnded: Bool, isLost: Bool)
  ) async throws {
    try await Rig.run(Self.configuration(store, ["response_timeout": "5s"])) { rig in
      let (gate, other) = (Gate(), Gate())
      rig.backend.on("/v1/orders") { [log = rig.backend.log] _ in
        guard log.value.requests.count == 1 else {
          var reply = Reply(201, body: #"{"results":[{"id":"a","run":2}]}"#)
          reply.gate = other
          return reply
        }
        var reply = Reply(
          201, body: #"{"results":[{"id":"a","run":1},{"id":"b","run":1}]}"#,
          ending: late.isLost ? .closedWithoutResponse : .whole)
        reply.gate = gate
        return reply
      }
      async let first = send(rig, [("a", 1), ("b", 1)])
      try await rig.backend.arrived(1)
      try await rig.key(["forget"] + Rig.selection("a"))
      async let second = send(rig, [("a", 1)])
      try await rig.backend.arrived(2)
      if late.otherHasEnded { other.open() }
      let timedOut = try await first
      if late.otherHasEnded {
        #expect(timedOut.idempotencyStatus == "batch; executed=0; replayed=1; refused=1")
      }
      gate.open()
      if late.isLost {
        try await rig.semel.counter("semel_in_flight_requests", becomes: late.otherHasEnded ? 0 : 1)
      } else {
        try await rig.semel.counter("semel_late_responses_total", isAtLeast: 1)
      }
      other.open()
      // It may have begun so soon after the first that its time is over, too.
      _ = try await second
      try await rig.semel.counter("semel_in_flight_requests", becomes: 0)
      let again = try await send(rig, [("a", 1), ("b", 1)])
      #expect(again.text.contains(#"{"id":"a","run":2}"#))
      #expect(again.text.contains(late.isLost ? "outcome_unknown" : #"{"id":"b","run":1}"#))
      #expect(rig.backend.requests.count == 2)
    }
  }
}
