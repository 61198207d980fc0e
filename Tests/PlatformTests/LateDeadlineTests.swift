import NIOCore
import Platform
import Testing

struct LateDeadlineTests {
  private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  @Test func `a deadline that is checked in time is over`() {
    var deadline = LateDeadline(in: 500, now: Self.start)
    #expect(deadline.left(now: Self.start) == 500)
    let over = deadline.isOver(now: Self.start + .milliseconds(520))
    #expect(over)
  }

  @Test func `a deadline that is checked late is extended once`() {
    var deadline = LateDeadline(in: 500, now: Self.start)
    let late = Self.start + .seconds(40)
    let isOver = deadline.isOver(now: late)
    #expect(!isOver)
    #expect(deadline.left(now: late) == 1000)
    let isOverThen = deadline.isOver(now: late + .seconds(41))
    #expect(isOverThen)
  }

  @Test func `after a stall timers fire once the loop has polled`() async throws {
    let events = try await onLoop { context in
      let log = EventLog()
      let timer = context.timers.start(milliseconds: 20) { log.names.append("timer") }
      // An event that arrived during the stall, and would have stopped the timer if the loop had read it.
      context.loop.scheduleTask(in: .milliseconds(201)) { context.timers.stop(timer) }
      await withUnsafeContinuation { continuation in
        context.loop.execute {
          let end = NIODeadline.now() + .milliseconds(200)
          while .now() < end {}
          continuation.resume()
        }
      }
      // The timer would fire within this.
      await context.sleep(milliseconds: 60)
      return log.names
    }
    #expect(events.isEmpty)
  }
}

/// Touched on one loop alone.
private final class EventLog: @unchecked Sendable {
  var names: [String] = []
}
