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
    #expect(machine.didEndResponse(isSent: true, hasStrayBytes: false) == .keep)
    #expect(machine.exchange == nil && machine.wasUsed)
    #expect(machine.didRead())
    #expect(!machine.didRead())
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
    #expect(machine.close())
    #expect(machine.bytesAction == .drop)
    #expect(!machine.close())
  }

  @Test func `bytes behind a response close the connection`() {
    var machine = Self.carrying()
    #expect(machine.didEndResponse(isSent: true, hasStrayBytes: true) == .closeForStrayBytes)
    #expect(!machine.didRead())
  }

  @Test(arguments: [(true, false), (false, true)])
  func `a connection that must not be used again is closed`(isSent: Bool, keepsAlive: Bool) {
    var machine = Self.carrying(keepsAlive: keepsAlive)
    #expect(machine.didEndResponse(isSent: isSent, hasStrayBytes: false) == .close)
    #expect(!machine.didRead())
  }

  @Test func `a response that ends while the connection is closed is whole, and the last one`() {
    var machine = Self.carrying()
    #expect(machine.close())
    #expect(machine.exchange == "a" && machine.bytesAction == .decode)
    #expect(machine.didEndResponse(isSent: true, hasStrayBytes: false) == .close)
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
    #expect(machine.endExchange() == "a")
    #expect(!machine.isTunnel && machine.exchange == nil)
  }

  @Test func `an exchange that has failed is ended once`() {
    var machine = Self.carrying()
    #expect(machine.endExchange() == "a")
    #expect(machine.endExchange() == nil)
    #expect(!machine.wasUsed && !machine.didRead())
  }
}
