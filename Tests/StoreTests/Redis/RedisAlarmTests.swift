import Idempotency
import Logging
import Platform
import Testing

@testable import Store

/// The times in which live claims may not stand in Redis as their owners believe.
struct RedisAlarmTests {
  private let alarm = RedisAlarm(logger: Logger(label: "alarm"))

  @Test func `nothing is taken over until owners have repeated the writes that an outage held up`() {
    #expect(alarm.mayTakeOver(after: 0))
    alarm.noteReturn(at: .now, callTime: 500)
    #expect(!alarm.mayTakeOver(after: 0))
    alarm.noteReturn(at: .now + -7400, callTime: 500)
    #expect(!alarm.mayTakeOver(after: 0))
    alarm.noteReturn(at: .now + -7500, callTime: 500)
    #expect(alarm.mayTakeOver(after: 0))
  }

  @Test func `a step beyond the shortest life of an outcome is a loss, once for all loops`() {
    func step(_ span: Int64, to difference: Int64, of server: String = "s") -> Bool {
      alarm.clockStepped(by: Milliseconds(span), to: difference, of: server)
    }
    #expect(!step(1_000_000, to: 1_000_000))
    for life in [500, 1000] as [Milliseconds] { alarm.recorded(for: life) }
    #expect(!step(500, to: 1_000_500))
    #expect(step(600, to: 1_001_100))
    // Another loop meets it later, and one that has met nothing before.
    #expect(!step(600, to: 1_001_100))
    #expect(!step(1_001_100, to: 1_001_100))
    // Back, and once more.
    #expect(!step(-9000, to: 992_100))
    #expect(step(9000, to: 1_001_100))
    #expect(step(9000, to: 9000, of: "other"))
  }

  @Test func `nothing is taken over for a lease after the leases were renewed`() {
    alarm.renewLeases()
    #expect(!alarm.mayTakeOver(after: .seconds(60)))
    #expect(alarm.mayTakeOver(after: 0))
  }
}
