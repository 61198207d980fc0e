import Idempotency
import Testing
import Wire

struct LongestExchangeTests {
  @Test func `an exchange may last for its lease, connecting, the response and a late one`() {
    var upstream = UpstreamSettings(name: "u", address: .unix(path: "/u"))
    upstream.connectTimeout = .seconds(60)
    upstream.connectRetries = 2
    upstream.responseTimeout = .seconds(7)
    upstream.settle = .seconds(5)
    var policy = RoutePolicy(name: "r", match: RouteMatch(), upstream: upstream)
    policy.lease = .seconds(3)
    // Three attempts, each after a wait for a free connection, and a pause.
    let connecting = Milliseconds(3 * (60_000 + 60_000 + 500))
    #expect(upstream.longestConnecting == connecting)
    #expect(policy.longestExchange == connecting + .seconds(7 + 5 + 3))
    #expect(Fence.span(outlasting: policy.longestExchange) > Fence.storing + policy.longestExchange)
  }
}
