import NIOCore
import Testing

@testable import Transport

struct ConnectFailuresTests {
  private static func time(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }

  @Test func `an entry is due once a minute for each upstream, and counts those before it`() {
    var failures = ConnectFailures()
    #expect(failures.count(of: "orders", at: Self.time(0)) == 1)
    #expect(failures.count(of: "orders", at: Self.time(1)) == nil)
    #expect(failures.count(of: "other", at: Self.time(2)) == 1)
    #expect(failures.count(of: "orders", at: Self.time(59)) == nil)
    #expect(failures.count(of: "orders", at: Self.time(60)) == 3)
    #expect(failures.count(of: "orders", at: Self.time(200)) == 1)
  }
}
