import Idempotency
import Testing

struct KeyRateTests {
  private static let second: Int64 = 1_000_000_000

  @Test func `a quota may be used at once, and then fills evenly`() {
    let rate = KeyRate(count: 4, period: .seconds(8))
    var fullAt: Int64 = 0
    func wait(at second: Int64) -> Milliseconds? {
      let taken = rate.take(fullAt: fullAt, now: second * Self.second)
      fullAt = taken.fullAt
      return taken.wait
    }
    for _ in 0..<4 { #expect(wait(at: 100) == nil) }
    #expect(wait(at: 100) == 2000)
    #expect(wait(at: 101) == 1000)
    #expect(wait(at: 102) == nil)
    #expect(wait(at: 102) == 2000)
    for _ in 0..<4 { #expect(wait(at: 200) == nil) }
    #expect(wait(at: 200) == 2000)
  }
}
