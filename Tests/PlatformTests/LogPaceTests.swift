import NIOCore
import Platform
import Testing

struct LogPaceTests {
  private static func time(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }

  @Test func `an entry is due once a minute for each key, and counts the events before it`() {
    var pace = LogPace<String>()
    #expect(pace.count("orders", at: Self.time(0)) == 1)
    #expect(pace.count("orders", at: Self.time(1)) == nil)
    #expect(pace.count("other", at: Self.time(2)) == 1)
    #expect(pace.count("orders", at: Self.time(59)) == nil)
    #expect(pace.count("orders", at: Self.time(60)) == 3)
    #expect(pace.count("orders", at: Self.time(200)) == 1)
  }

  @Test func `a pause doubles up to its maximum, and begins anew after a success`() {
    var backoff = Backoff(first: 3, max: 20)
    #expect((0..<5).map { _ in backoff.next() } == [3, 6, 12, 20, 20])
    backoff.reset()
    #expect(backoff.next() == 3)
  }
}
