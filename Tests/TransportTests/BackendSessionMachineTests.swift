import NIOHTTP2
import Testing

@testable import Transport

/// The streams of one connection, without a socket.
struct BackendSessionMachineTests {
  /// A connection on which this many streams are open.
  private static func open(_ count: Int) -> BackendSessionMachine {
    var machine = BackendSessionMachine()
    for _ in 0..<count { machine.open() }
    return machine
  }

  @Test func `streams are opened up to the backend's limit, which may fall below those that are open`() {
    var machine = Self.open(1)
    machine.adopt([HTTP2Setting(parameter: .maxConcurrentStreams, value: 2)])
    #expect(machine.maxStreams == 2 && machine.hasRoom)
    machine.open()
    #expect(!machine.hasRoom && machine.mayBegin)
    machine.adopt([HTTP2Setting(parameter: .maxConcurrentStreams, value: 1)])
    #expect(!machine.mayBegin)
    let action = machine.ended()
    #expect(action == .offer && machine.mayBegin && !machine.hasRoom)
  }

  @Test func `no connection carries more resets than a part of the limits of servers`() {
    var machine = BackendSessionMachine()
    machine.adopt([HTTP2Setting(parameter: .maxConcurrentStreams, value: 1000)])
    var leaves = false
    while !leaves {
      machine.open()
      leaves = machine.willReset()
      _ = machine.ended()
      if !leaves { #expect(machine.hasRoom) }
    }
    // All that may still be reset is open by then.
    #expect(BackendSessionMachine.maxResets + machine.maxStreams <= 150)
  }

  @Test func `unread bytes hold back the only stream, and all others until they are read`() {
    var machine = Self.open(1)
    let begins = machine.mayBeginBesideUnread()
    #expect(!begins && !machine.hasRoom && machine.holdsBack(needsWindow: false))
    let action = machine.ended()
    #expect(action == .offer)
    let reads = [machine.didRead(), machine.didRead()]
    #expect(reads == [true, false])
    #expect(machine.hasRoom && !machine.holdsBack(needsWindow: false))
  }

  @Test func `unread bytes beside another stream are that stream's`() {
    var machine = Self.open(2)
    let begins = machine.mayBeginBesideUnread()
    #expect(begins && machine.hasRoom)
  }

  @Test func `a connection that leaves closes when its last stream ends`() {
    var machine = Self.open(2)
    let left = [machine.leave(), machine.leave()]
    #expect(left == [true, false])
    #expect(!machine.isServing && !machine.hasRoom && !machine.mayBegin && !machine.isOver)
    let ends = [machine.ended(), machine.ended()]
    #expect(ends == [.none, .close])
    #expect(machine.isOver)
  }

  @Test func `unread bytes are of no account once the connection leaves`() {
    var machine = Self.open(1)
    _ = machine.mayBeginBesideUnread()
    machine.leave()
    let wasAwaited = machine.didRead()
    #expect(!wasAwaited && !machine.isServing && !machine.holdsBack(needsWindow: true))
  }

  @Test func `a reserved connection takes its one exchange, and closes with it`() {
    var machine = BackendSessionMachine()
    machine.reserve()
    machine.open()
    #expect(machine.mayBegin && !machine.hasRoom && !machine.isServing)
    let left = machine.leave()
    #expect(!left && machine.mayBegin)
    let begins = machine.mayBeginBesideUnread()
    #expect(!begins)
    let action = machine.ended()
    #expect(action == .close)
  }

  @Test func `windows hold back bodies, and a window that was never taken ends the connection`() {
    var machine = Self.open(1)
    #expect(machine.hasWindow && !machine.holdsBack(needsWindow: true))
    machine.adopt([HTTP2Setting(parameter: .initialWindowSize, value: 0)])
    #expect(!machine.hasWindow)
    #expect(machine.holdsBack(needsWindow: true) && !machine.holdsBack(needsWindow: false))
    machine.adopt([HTTP2Setting(parameter: .initialWindowSize, value: 10)])
    machine.willSend(65_535)
    #expect(!machine.hasWindow && !machine.isExhausted)
    // Another connection would have a window of its own.
    #expect(!machine.holdsBack(needsWindow: true))
    _ = machine.ended()
    #expect(machine.isExhausted)
    machine.windowGrew(by: 1)
    #expect(machine.hasWindow && !machine.isExhausted)
  }

  @Test func `GOAWAY disowns nothing if it leaves out a stream that has a response`() {
    var machine = BackendSessionMachine()
    machine.didRespond(on: 5)
    machine.didRespond(on: 3)
    machine.didReceiveGoAway(last: 3, isError: false)
    #expect(!machine.disowns(7))
    var honest = BackendSessionMachine()
    honest.didRespond(on: 5)
    honest.didReceiveGoAway(last: 5, isError: false)
    #expect(honest.disowns(7))
  }

  @Test func `GOAWAY disowns the streams above the lowest one that it named`() {
    var machine = Self.open(3)
    #expect(!machine.disowns(5))
    machine.didReceiveGoAway(last: 5, isError: false)
    machine.didReceiveGoAway(last: 3, isError: false)
    machine.didReceiveGoAway(last: 7, isError: false)
    #expect(machine.disowns(5) && !machine.disowns(3))
  }

  @Test(arguments: [true, false])
  func `GOAWAY with an error proves nothing, whatever comes before or after it`(isFirst: Bool) {
    var machine = Self.open(3)
    machine.didReceiveGoAway(last: 0, isError: isFirst)
    machine.didReceiveGoAway(last: 0, isError: !isFirst)
    #expect(!machine.disowns(1))
  }
}
