import TestSupport
import Testing

/// The backend was not reached: provably not executed.
struct UnreachableTests {
  @Test(arguments: StoreKind.allCases)
  func `a request that was not sent runs once the backend is up`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store), backendIsUp: false) { rig in
      for _ in 0..<2 {
        expectRefused(try await rig.order("k"), 502, "upstream_unreachable", retryable: true)
      }
      try await rig.backend.start()
      expectExecuted(try await rig.order("k"))
      expectReplayed(try await rig.order("k"), 201)
      #expect(rig.backend.requests.map(\.attempt) == ["3"])
    }
  }

  @Test func `connecting is retried`() async throws {
    let upstream = ["connect_retries": "40", "connect_timeout": "5s"]
    try await Rig.run(Configuration(upstream: upstream), backendIsUp: false) { rig in
      async let first = rig.order("k")
      try await rig.semel.counter("semel_upstream_connect_retries_total", isAtLeast: 1)
      try await rig.backend.start()
      expectExecuted(try await first)
      #expect(rig.backend.requests.map(\.attempt) == ["1"])
    }
  }

  @Test func `a request to a name that does not resolve is not executed`() async throws {
    let upstream = ["url": "'http://semel.invalid:80'", "connect_retries": "0"]
    try await Rig.run(Configuration(upstream: upstream)) { rig in
      expectRefused(try await rig.order("k"), 502, "upstream_unreachable", retryable: true)
    }
  }

  @Test func `a passed-through request whose backend is not reached is refused`() async throws {
    try await Rig.run(backendIsUp: false) { rig in
      expectRefused(
        try await rig.order(nil, path: "/elsewhere"), 502, "upstream_unreachable", retryable: true)
    }
  }
}
