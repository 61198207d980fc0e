import Testing

@testable import Transport

/// The uses of one connection, without a socket.
struct BackendConnectionMachineTests {
  private typealias Machine = BackendConnectionMachine<String>

  /// A connection whose exchange `a` is under way.
  private static func carrying(keepsAlive: Bool = true) -> Machine {
    var machine = Machine()
    machine.begin("a")
    machine.didReceiveHead(keepsAlive: keepsAlive)
    return machine
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
    machine.didReceiveHead(keepsAlive: true)
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
