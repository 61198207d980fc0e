import Idempotency
import NIOCore
import Testing
import Wire

@testable import Transport

/// The send gate.
struct SendGateTests {
  private func gate(
    _ method: String, _ body: RequestBody = .none, permit: SendPermit? = nil, overridesMethod: Bool = false,
    isProtected: Bool? = nil
  ) -> SendGate {
    SendGate(
      UpstreamRequest(
        upstream: UpstreamSettings(name: "u", address: .unix(path: "/s")), method: method, target: "/",
        fields: ByteBuffer(), body: body, permit: permit, overridesMethod: overridesMethod,
        isProtected: isProtected))
  }

  private let early = BootInstant(nanoseconds: 0)
  private let late = BootInstant(nanoseconds: 60_000_000_000)
  private func permit() -> SendPermit { SendPermit(requestedAt: early, lease: .seconds(30)) }

  @Test func `the gate opens once`() {
    for (method, permit) in [("POST", permit()), ("POST", nil), ("GET", permit())] {
      var gate = gate(method, permit: permit)
      let opened = [gate.open(now: early), gate.open(now: early)]
      #expect(opened == [true, false])
      #expect(gate.failure("x") == .responseLost("x"))
    }
  }

  @Test func `the gate opens again only for a safe method without permit and content`() {
    let content = RequestBody.whole(ByteBuffer(string: "x"))
    for (gate, isRepeatable) in [
      (gate("GET"), true), (gate("GET", content), false), (gate("get"), false),
      // A protected request that runs without its record.
      (gate("GET", isProtected: true), false),
      // The backend may take it for a POST.
      (gate("GET", overridesMethod: true), false),
    ] {
      var gate = gate
      let opened = [gate.open(now: early), gate.open(now: early)]
      #expect(opened == [true, isRepeatable])
    }
  }

  @Test func `a stale permit leaves the gate shut, and nothing was sent`() {
    let permit = permit()
    var gate = gate("POST", permit: permit)
    let isOpen = gate.open(now: late)
    #expect(!isOpen && !gate.hasOpened && !permit.isSent)
    #expect(gate.failure("x").isNotSent)
    #expect(!gate.allowsRetry(after: 0, now: early))
  }

  @Test func `a permit that another exchange used leaves the gate shut, and the outcome unknown`() {
    let permit = permit()
    _ = permit.take(now: early)
    var gate = gate("POST", permit: permit)
    let isOpen = gate.open(now: early)
    #expect(!isOpen && gate.failure("x").isResponseLost)
  }

  @Test func `connecting is retried while the permit holds, and not once the request was sent`() {
    let gate = gate("POST", permit: permit())
    #expect(gate.allowsRetry(after: 100, now: early))
    #expect(!gate.allowsRetry(after: .seconds(29), now: early))
    var sent = self.gate("POST")
    #expect(sent.allowsRetry(after: .seconds(29), now: late))
    _ = sent.open(now: early)
    #expect(!sent.allowsRetry(after: 0, now: early))
  }
}

/// The backoff of connecting.
struct ConnectBackoffTests {
  /// Draws the greatest number.
  private struct Highest: RandomNumberGenerator {
    mutating func next() -> UInt64 { .max }
  }

  @Test func `the backoff doubles to its cap and ends`() {
    var backoff = ConnectBackoff(retries: 7)
    var random = Highest()
    let delays = (0..<8).map { _ in backoff.next(using: &random)?.count }
    #expect(delays == [25, 50, 100, 200, 400, 500, 500, nil])
  }
}
