import Testing

@testable import Proxy

struct HTTP2DrainTests {
  @Test func `an idle connection ends once the client knows`() {
    var drain = HTTP2Drain(maxRunning: 2)
    #expect(drain.begin() == .announce)
    #expect(drain.begin() == .nothing)
    #expect(drain.confirmed() == .close(last: 0))
    #expect(drain.confirmed() == .nothing)
  }

  @Test func `streams that are open are finished, also those that came after the announcement`() {
    var drain = HTTP2Drain(maxRunning: 2)
    drain.opened(1)
    #expect(drain.begin() == .announce)
    drain.opened(3)
    #expect(drain.ended() == .nothing)
    #expect(drain.confirmed() == .name(last: 3))
    #expect(drain.ended() == .close(last: 3))
  }

  @Test func `a serving connection stays when its last stream ends`() {
    var drain = HTTP2Drain(maxRunning: 2)
    drain.opened(1)
    #expect(drain.ended() == .nothing)
    #expect(drain.stage == .serving)
  }

  @Test func `a delivery that continues after a reset counts`() {
    var drain = HTTP2Drain(maxRunning: 2)
    let verdicts = (0..<3).map { _ in drain.acquire() }
    #expect(verdicts == [true, true, false])
    drain.release()
    let again = drain.acquire()
    #expect(again)
  }
}
