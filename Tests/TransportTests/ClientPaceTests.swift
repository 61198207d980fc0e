import NIOCore
import Testing

@testable import Transport

struct ClientPaceTests {
  private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
  private static let later = start + .seconds(60)

  @Test func `a client that pauses within the first 64 KiB of its body has moved nothing`() {
    var pace = ClientPace()
    pace.isStarving = true
    pace.didMove(ClientPace.step - 1, now: Self.start)
    #expect(pace.isAwaited(hasHead: false, hasBody: false))
    #expect(pace.movedAt == .uptimeNanoseconds(0))
    pace.didMove(1, now: Self.later)
    #expect(pace.movedAt == Self.later)
  }

  @Test func `after a short upload the first pause of the response gives the client its whole time`() {
    var pace = ClientPace()
    pace.isTracked = true
    pace.didMove(1000, now: Self.start)
    pace.setPaused(false, now: Self.start)
    #expect(pace.movedAt == .uptimeNanoseconds(0))
    pace.setPaused(true, now: Self.later)
    #expect(pace.isAwaited(hasHead: true, hasBody: true))
    #expect(pace.movedAt == Self.later)
    // Bytes that were moved before count no more.
    pace.didMove(ClientPace.step - 1, now: Self.later + .seconds(1))
    #expect(pace.movedAt == Self.later)
  }

  @Test func `further pauses give no time, but 64 KiB of the response do`() {
    var pace = ClientPace()
    for (isPaused, second) in [(true, 0), (false, 1), (true, 2)] {
      pace.setPaused(isPaused, now: Self.start + .seconds(Int64(second)))
    }
    #expect(pace.movedAt == Self.start)
    pace.didMove(ClientPace.step, now: Self.later)
    #expect(pace.movedAt == Self.later)
  }

  @Test func `nobody waits for a client with a response that takes what there is`() {
    var pace = ClientPace()
    pace.isStarving = true
    #expect(!pace.isAwaited(hasHead: true, hasBody: true))
    pace.setPaused(true, now: Self.start)
    #expect(!pace.isAwaited(hasHead: true, hasBody: false))
  }
}
