import Testing

@testable import Telemetry

/// The failures of the store that are logged.
struct StoreFailureStateTests {
  private static let second: UInt64 = 1_000_000_000

  @Test func `one error is logged at once, and then with its count once a minute`() {
    var state = StoreFailureState()
    #expect(state.failed("full", now: 0) == .init(count: 1))
    for index in 0..<100 { #expect(state.failed("full", now: UInt64(index) * Self.second / 2) == nil) }
    #expect(state.failed("full", now: 61 * Self.second) == .init(count: 101))
  }

  @Test func `another error has an entry of its own, and many share one`() {
    var state = StoreFailureState()
    var logged = 0
    for index in 0..<1000 where state.failed("error \(index)", now: 1) != nil { logged += 1 }
    #expect(logged == StoreFailureState.maxErrors + 1)
  }

  @Test func `a success ends them once nothing has failed for a while`() {
    var state = StoreFailureState()
    #expect(state.succeeded(now: 1) == nil)
    for _ in 0..<3 { _ = state.failed("full", now: 10 * Self.second) }
    #expect(state.succeeded(now: 11 * Self.second) == nil)
    #expect(state.succeeded(now: 15 * Self.second) == 3)
    #expect(state.succeeded(now: 16 * Self.second) == nil)
    // Failures that come and go are not a line each.
    #expect(state.failed("full", now: 17 * Self.second) == nil)
    #expect(state.failed("full", now: 80 * Self.second) == .init(count: 4))
  }
}
