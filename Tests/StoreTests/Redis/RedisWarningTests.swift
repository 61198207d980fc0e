import Idempotency
import Testing

@testable import Store

/// The log entries about Redis, which inspections and connections repeat.
struct RedisWarningTests {
  private let start = BootInstant(nanoseconds: 1_000_000_000)

  @Test func `a Redis that goes on evicting keys is doubted by one text`() {
    let settings = "aof_enabled:1\r\nmaxmemory:9\r\nmaxmemory_policy:noeviction\r\nexpired_keys:7\r\n"
    let doubts = [0, 1, 2, 30_000].map { count in
      var facts = RedisFacts()
      // The reply to a second reading replaces the first.
      for _ in 0..<2 { facts.take(.text("\(settings)evicted_keys:\(count)\r\n"), to: .info) }
      return facts.doubts
    }
    #expect(doubts.map(\.count) == [0, 1, 1, 1], "\(doubts)")
    #expect(doubts.dropFirst().allSatisfy { $0 == doubts[1] }, "\(doubts)")
  }

  @Test func `a text is due again after the interval, and others are due meanwhile`() {
    var pace = WarningPace()
    let entries: [(String, Int64)] = [
      ("a", 0), ("a", 3), ("b", 3), ("a", 59), ("a", 60), ("b", 62), ("b", 63),
    ]
    var dues: [Bool] = []
    for (text, second) in entries { dues.append(pace.isDue(text, at: start + .seconds(second))) }
    #expect(dues == [true, false, true, false, true, false, true])
  }

  @Test func `a text that is due is not kept`() {
    var pace = WarningPace()
    for second in 0..<1000 {
      _ = pace.isDue("\(second) keys", at: start + .seconds(Int64(second)))
      #expect(pace.count <= 60)
    }
  }

  @Test func `the end of a reason is reported once, however long it has stood`() {
    var pace = WarningPace()
    let begins = [pace.begins("short", at: start), pace.begins("short", at: start + .seconds(1))]
    #expect(begins == [true, false])
    _ = pace.isDue("another", at: start + .seconds(600))
    let ends = [pace.ends("short"), pace.ends("short"), pace.ends("another")]
    #expect(ends == [true, false, false])
    let isDueAgain = pace.begins("short", at: start + .seconds(601))
    #expect(isDueAgain)
  }
}
