import NIOCore
import Testing

@testable import Transport

struct BackendFaultsTests {
  private static func time(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }

  @Test func `an entry is due once a minute for each upstream and kind, and counts those before it`() {
    let faults = BackendFaults(upstreams: ["orders", "idle"])
    #expect(faults.count(.strayBytes, of: "orders", at: Self.time(0)) == 1)
    #expect(faults.count(.strayBytes, of: "orders", at: Self.time(1)) == nil)
    #expect(faults.count(.malformedResponse, of: "orders", at: Self.time(1)) == 1)
    #expect(faults.count(.strayBytes, of: "other", at: Self.time(2)) == 1)
    #expect(faults.count(.strayBytes, of: "orders", at: Self.time(59)) == nil)
    #expect(faults.count(.strayBytes, of: "orders", at: Self.time(60)) == 3)
    #expect(faults.count(.strayBytes, of: "orders", at: Self.time(200)) == 1)
    let stray = faults.counts(of: .strayBytes)
    #expect(stray.map { $0.upstream } == ["idle", "orders", "other"])
    #expect(stray.map { $0.count } == [0, 5, 1])
    #expect(faults.counts(of: .malformedResponse).map { $0.count } == [0, 1])
  }
}
