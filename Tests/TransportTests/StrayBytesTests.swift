import NIOCore
import Testing

@testable import Transport

struct StrayBytesTests {
  private static func time(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }

  @Test func `an entry is due once a minute for each upstream, and counts those before it`() {
    let stray = StrayBytes(upstreams: ["orders", "idle"])
    #expect(stray.count(of: "orders", at: Self.time(0)) == 1)
    #expect(stray.count(of: "orders", at: Self.time(1)) == nil)
    #expect(stray.count(of: "other", at: Self.time(2)) == 1)
    #expect(stray.count(of: "orders", at: Self.time(59)) == nil)
    #expect(stray.count(of: "orders", at: Self.time(60)) == 3)
    #expect(stray.count(of: "orders", at: Self.time(200)) == 1)
    let all = stray.connections
    #expect(all.map { $0.upstream } == ["idle", "orders", "other"])
    #expect(all.map { $0.count } == [0, 5, 1])
  }
}
