import Testing

@testable import Proxy

struct HTTP2DrainTests {
  @Test func `an idle connection ends once the client knows`() {
    var drain = HTTP2Drain(maxStreams: 2)
    #expect(drain.begin() == .announce)
    #expect(drain.begin() == .nothing)
    #expect(drain.confirmed() == .close(last: 0))
    #expect(drain.confirmed() == .nothing)
  }

  @Test func `streams that are open are finished, also those that came after the announcement`() {
    var drain = HTTP2Drain(maxStreams: 2)
    let first = drain.opened(1)
    #expect(drain.begin() == .announce)
    let second = drain.opened(3)
    #expect(first && second)
    #expect(drain.ended() == .nothing)
    #expect(drain.confirmed() == .name(last: 3))
    #expect(drain.ended() == .close(last: 3))
  }

  @Test func `streams above the last one that was named are not taken`() {
    var drain = HTTP2Drain(maxStreams: 2)
    _ = drain.opened(1)
    _ = drain.begin()
    #expect(drain.confirmed() == .name(last: 1))
    let late = drain.opened(3)
    #expect(!late && drain.last == 1)
    // It ends at once. The first one goes on.
    #expect(drain.ended() == .nothing)
    #expect(drain.ended() == .close(last: 1))
    let latest = drain.opened(5)
    #expect(!latest && drain.last == 1)
    #expect(drain.ended() == .nothing)
  }

  @Test func `a serving connection stays when its last stream ends`() {
    var drain = HTTP2Drain(maxStreams: 2)
    _ = drain.opened(1)
    #expect(drain.ended() == .nothing)
    #expect(drain.stage == .serving)
  }

  @Test func `a delivery that continues after a reset counts`() {
    var drain = HTTP2Drain(maxStreams: 2)
    let verdicts = (0..<3).map { _ in drain.acquire() }
    #expect(verdicts == [true, true, false])
    drain.release()
    let again = drain.acquire()
    #expect(again)
  }
}
