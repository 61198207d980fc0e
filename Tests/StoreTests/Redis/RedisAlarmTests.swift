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

  @Test func `nothing is taken over for a lease after the leases were renewed`() {
    alarm.renewLeases()
    #expect(!alarm.mayTakeOver(after: .seconds(60)))
    #expect(alarm.mayTakeOver(after: 0))
  }
}
