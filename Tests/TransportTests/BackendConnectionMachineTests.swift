import Idempotency
import Testing
import Wire

@testable import Transport

/// The uses of one connection, without a socket.
struct BackendConnectionMachineTests {
  private typealias Machine = BackendConnectionMachine<String>

  /// A connection whose exchange `a` is under way.
  private static func carrying(keepsAlive: Bool = true) -> Machine {
    var machine = Machine()
    machine.begin("a")
    machine.didReceiveHead(keepsAlive: keepsAlive, hasCertainEnd: true, terms: KeepAliveTerms())
    return machine
  }

  /// Carries one whole exchange of a backend with these terms. Returns what follows its response.
  private static func exchange(on machine: inout Machine, _ terms: KeepAliveTerms) -> Machine.EndAction {
    machine.begin("a")
    machine.didReceiveHead(keepsAlive: true, hasCertainEnd: true, terms: terms)
    defer { _ = machine.didRead() }
    return machine.didEndResponse(isSent: true, hasStrayBytes: false)
  }

  @Test(arguments: [
    // The number that is left, as Apache states it; that of all, as Node states it; and a statement that is not repeated.
    [2, 1, 0], [2, 2, 2], [2, nil, nil], [nil, 1, nil], [5, 5, 0],
  ])
  func `a connection carries no more exchanges than its backend takes`(statements: [Int?]) {
    var machine = Machine()
    let ends = statements.map { Self.exchange(on: &machine, KeepAliveTerms(max: $0)) }
    #expect(ends == [.keep, .keep, .close])
  }

  @Test func `an unused connection is kept for half of the time that its backend has stated last`() {
    var machine = Machine()
    #expect(machine.maxIdleTime == nil)
    var times: [Milliseconds?] = []
    for seconds in [5, nil, 1, .max] {
      let end = Self.exchange(on: &machine, KeepAliveTerms(timeout: seconds))
      #expect(end == .keep)
      times.append(machine.maxIdleTime)
    }
    #expect(times == [2500, 2500, 500, 43_200_000])
  }

  @Test func `a connection whose backend keeps it for no time is closed`() {
    var machine = Machine()
    let end = Self.exchange(on: &machine, KeepAliveTerms(timeout: 0))
    #expect(end == .close)
  }

  @Test func `a connection is free once the read that ended its response is over`() {
    var machine = Self.carrying()
    #expect(machine.exchange == "a" && !machine.wasUsed)
    let action = machine.didEndResponse(isSent: true, hasStrayBytes: false)
    #expect(action == .keep)
    #expect(machine.exchange == nil && machine.wasUsed)
    let ends = [machine.didRead(), machine.didRead()]
    #expect(ends == [true, false])
    machine.begin("b")
    #expect(machine.exchange == "b")
  }

  @Test func `bytes without an exchange close the connection`() {
    var machine = Machine()
    #expect(machine.bytesAction == .closeForStrayBytes)
    machine.begin("a")
    #expect(machine.bytesAction == .decode)
    _ = machine.didEndResponse(isSent: true, hasStrayBytes: false)
    // In the read that ended the response.
    #expect(machine.bytesAction == .closeForStrayBytes)
    let closes = [machine.close(), machine.close()]
    #expect(closes == [true, false])
    #expect(machine.bytesAction == .drop)
  }

  @Test func `bytes behind a response close the connection`() {
    var machine = Self.carrying()
    let action = machine.didEndResponse(isSent: true, hasStrayBytes: true)
    #expect(action == .closeForStrayBytes)
    let isFree = machine.didRead()
    #expect(!isFree)
  }

  @Test(arguments: [(true, false), (false, true)])
  func `a connection that must not be used again is closed`(isSent: Bool, keepsAlive: Bool) {
    var machine = Self.carrying(keepsAlive: keepsAlive)
    let action = machine.didEndResponse(isSent: isSent, hasStrayBytes: false)
    #expect(action == .close)
    let isFree = machine.didRead()
    #expect(!isFree)
  }

  @Test func `after a response with a doubtful end, the order of what follows stays doubtful`() {
    var machine = Self.carrying()
    _ = machine.didEndResponse(isSent: true, hasStrayBytes: false)
    _ = machine.didRead()
    #expect(machine.hasCertainOrder)
    for hasCertainEnd in [false, true] {
      machine.begin("b")
      machine.didReceiveHead(keepsAlive: true, hasCertainEnd: hasCertainEnd, terms: KeepAliveTerms())
      let action = machine.didEndResponse(isSent: true, hasStrayBytes: false)
      #expect(action == .keep && !machine.hasCertainOrder)
      _ = machine.didRead()
    }
  }

  @Test func `a response that ends while the connection is closed is whole, and the last one`() {
    var machine = Self.carrying()
    _ = machine.close()
    #expect(machine.exchange == "a" && machine.bytesAction == .decode)
    let action = machine.didEndResponse(isSent: true, hasStrayBytes: false)
    #expect(action == .close)
    #expect(machine.wasUsed && machine.bytesAction == .drop)
  }

  @Test func `a tunnel passes bytes until its connection ends`() {
    var machine = Machine()
    machine.begin("a")
    machine.didSwitchProtocols()
    #expect(machine.isTunnel && machine.bytesAction == .passOn)
    // A head no longer means anything.
    machine.didReceiveHead(keepsAlive: true, hasCertainEnd: true, terms: KeepAliveTerms())
    #expect(machine.isTunnel)
    let exchange = machine.endExchange()
    #expect(exchange == "a" && !machine.isTunnel && machine.exchange == nil)
  }

  @Test func `an exchange that has failed is ended once`() {
    var machine = Self.carrying()
    let ended = [machine.endExchange(), machine.endExchange()]
    #expect(ended == ["a", nil])
    let isFree = machine.didRead()
    #expect(!machine.wasUsed && !isFree)
  }
}
