import Idempotency
import Testing

/// Times that no clock tells: a damaged store must not stop the process with them.
struct InstantsTests {
  private static let extremes: [Int64] = [.min, .min + 1, -1, 0, 1, .max - 1, .max]

  @Test(arguments: extremes, extremes)
  func `the span between two times keeps its sign at the extremes`(_ left: Int64, _ right: Int64) {
    let span = StoreInstant(milliseconds: left) - StoreInstant(milliseconds: right)
    #expect(span == Milliseconds(left) - Milliseconds(right))
    #expect((span < 0) == (left < right))
    #expect((span == 0) == (left == right))
  }

  @Test(
    arguments: [
      (.min, 1), (0, 1), (1, 1), (1000, 1), (1001, 2), (.max, .max / 1000 + 1),
    ] as [(Int64, Int64)])
  func `seconds are rounded up, however many there are`(_ count: Int64, _ seconds: Int64) {
    #expect(Milliseconds(count).retryAfterSeconds == seconds)
  }
}
