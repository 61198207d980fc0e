import Testing

@testable import Proxy

struct SessionLifeTests {
  @Test func `an idle connection ends once the client knows`() {
    var life = SessionLife(maxRunning: 2)
    #expect(life.drain() == .announce)
    #expect(life.drain() == .nothing)
    #expect(life.confirmed() == .close(last: 0))
    #expect(life.confirmed() == .nothing)
  }

  @Test func `streams that are open are finished, also those that came after the announcement`() {
    var life = SessionLife(maxRunning: 2)
    life.opened(1)
    #expect(life.drain() == .announce)
    life.opened(3)
    #expect(life.ended() == .nothing)
    #expect(life.confirmed() == .name(last: 3))
    #expect(life.ended() == .close(last: 3))
  }

  @Test func `a connection that serves stays when its last stream ends`() {
    var life = SessionLife(maxRunning: 2)
    life.opened(1)
    #expect(life.ended() == .nothing)
    #expect(life.stage == .serving)
  }

  @Test func `what runs on after a reset counts`() {
    var life = SessionLife(maxRunning: 2)
    let verdicts = (0..<3).map { _ in life.mayRun() }
    #expect(verdicts == [true, true, false])
    life.runEnded()
    let again = life.mayRun()
    #expect(again)
  }
}
