import NIOCore
import Platform

/// The destinations of a world's connections: its listeners by their ports.
final class Network: @unchecked Sendable {
  /// The treatment of somebody who connects.
  enum Greeting {
    case accepts((End) -> Void)
    /// The connection is made some time later.
    case acceptsLater(Span, (End) -> Void)
    /// Nobody listens.
    case refuses
    /// Nothing comes back.
    case ignores
  }

  let schedule: Schedule
  private var dice: Dice
  private var listeners: [Int: () -> Greeting] = [:]
  private var wires: [(wire: Wire, near: End, far: End)] = []
  /// Whether no connection is long or narrow.
  private var isWide = false

  init(on schedule: Schedule, seed: UInt64) {
    self.schedule = schedule
    dice = Dice(seed, "network")
  }

  func listen(at port: Int, _ greet: @escaping () -> Greeting) { listeners[port] = greet }

  func stopListening(at port: Int) { listeners[port] = nil }

  /// Connects to a port. The call is made once the connection stands, or has failed; never if nobody replies.
  func connect(
    to port: Int, _ ended: @escaping (End?) -> Void
  ) {
    let wire = Wire(on: schedule, to: port, Dice(dice.next()))
    if isWide { wire.widen() }
    // Some connections take long to be made.
    let delay = dice.chance(0.1) ? dice.span(0, 0.25) : .zero
    schedule.at(wire.arrival() + delay) { [self] in
      switch listeners[port]?() ?? .refuses {
      case .ignores: break
      case .refuses: schedule.at(wire.arrival()) { ended(nil) }
      case .accepts(let accept): make(wire, accept, ended)
      case .acceptsLater(let span, let accept):
        schedule.after(span) { [self] in make(wire, accept, ended) }
      }
    }
  }

  private func make(_ wire: Wire, _ accept: (End) -> Void, _ ended: @escaping (End?) -> Void) {
    let (near, far) = wire.ends()
    wires.append((wire, near, far))
    accept(far)
    schedule.at(wire.arrival()) { wire.isLost ? () : ended(near) }
  }

  /// Calls with each connection that stands.
  func each(_ act: (Wire, End, End) -> Void) {
    wires.removeAll { $0.near.isClosed && $0.far.isClosed }
    for (wire, near, far) in wires { act(wire, near, far) }
  }

  /// Has all connections carry what they are given, also those to come.
  func widen() {
    isWide = true
    each { wire, _, _ in wire.widen() }
  }

  func dismantle() {
    for (_, near, far) in wires {
      near.dismantle()
      far.dismantle()
    }
    wires.removeAll()
    listeners.removeAll()
  }
}

/// The sockets of a node.
final class SimSockets: Sockets, @unchecked Sendable {
  private let network: Network
  private let machine: Machine
  private let loops: [SimLoop]
  private var dice: Dice
  /// Called with each connection that the node makes.
  var onConnect: (Wire, End) -> Void = { _, _ in }
  /// The ends of this node that may be open.
  private var ends: [End] = []
  /// Whether the store cannot be reached from this node.
  private var isCutOff = false

  init(on network: Network, machine: Machine, loops: [SimLoop], _ dice: Dice) {
    self.network = network
    self.machine = machine
    self.loops = loops
    self.dice = dice
  }

  func connect(
    _ connection: OutgoingConnection, on loop: any EventLoop
  ) -> EventLoopFuture<any Channel> {
    guard case .tcp(_, let port) = connection.place, let loop = loop as? SimLoop else {
      return loop.makeFailedFuture(ChannelError.operationUnsupported)
    }
    let promise = loop.makePromise(of: (any Channel).self)
    guard !isCutOff || !Rules.isStores(port) else {
      // Nothing comes back.
      _ = loop.scheduleTask(in: connection.timeout) {
        promise.fail(ChannelError.connectTimeout(connection.timeout))
      }
      return promise.futureResult
    }
    nonisolated(unsafe) var isLate = false
    let limit = loop.scheduleTask(in: connection.timeout) {
      isLate = true
      promise.fail(ChannelError.connectTimeout(connection.timeout))
    }
    network.connect(to: port) { [self] end in
      guard !machine.isDead else {
        Graves.bury(promise)
        return end?.close() ?? ()
      }
      nonisolated(unsafe) let end = end
      loop.execute { [self] in
        limit.cancel()
        guard !isLate else { return end?.close() ?? () }
        guard let end else { return promise.fail(IOError(errnoCode: 111, reason: "connect")) }
        begin(connection, on: loop, end, promise)
      }
    }
    return promise.futureResult
  }

  private func begin(
    _ connection: OutgoingConnection, on loop: SimLoop, _ end: End,
    _ promise: EventLoopPromise<any Channel>
  ) {
    keep(end)
    onConnect(end.wire, end)
    let channel = SimChannel(on: loop, end: end)
    do { try connection.prepare(channel) } catch {
      promise.fail(error)
      return end.close()
    }
    channel.activate { promise.succeed(channel) }
  }

  func listen(_ listener: BoundListener, on group: any EventLoopGroup) -> EventLoopFuture<
    any Channel
  > {
    guard case .tcp(_, let port) = listener.place else {
      return loops[0].makeFailedFuture(ChannelError.operationUnsupported)
    }
    let channel = SimChannel(on: loops[0], end: nil)
    channel.onAutoRead = { [self] in
      network.listen(at: port) { [self] in .accepts { self.accept($0, listener) } }
    }
    return loops[0].makeSucceededFuture(channel)
  }

  private func accept(_ end: End, _ listener: BoundListener) {
    guard !machine.isDead else { return end.reset() }
    keep(end)
    let loop = loops[dice.below(loops.count)]
    let address = try? SocketAddress(ipAddress: "192.0.2.\(1 + dice.below(200))", port: 40_000)
    nonisolated(unsafe) let end = end
    loop.execute {
      let channel = SimChannel(on: loop, end: end, remote: address, allowsHalfClosure: true)
      do { try listener.accept(channel) } catch { return end.close() }
      channel.activate()
    }
  }

  private func keep(_ end: End) {
    if ends.count > 64 { ends.removeAll { $0.isClosed } }
    ends.append(end)
  }

  /// Keeps the way to the store closed for a time: nothing passes on its connections, and no other is made.
  func cutOff(for span: Span) {
    isCutOff = true
    for end in ends where Rules.isStores(end.wire.port) { end.wire.stall(for: span) }
    network.schedule.after(span) { [self] in isCutOff = false }
  }

  /// Makes the way to the store long.
  func lengthenStores() {
    for end in ends where Rules.isStores(end.wire.port) { end.wire.lengthen() }
  }

  enum ProcessEnd {
    /// It has ended by itself: what it has written still arrives.
    case exits
    case isKilled
    /// The whole machine has gone, and nobody is told.
    case vanishes
  }

  /// Ends its connections as the kernel does.
  func die(_ how: ProcessEnd) {
    for end in ends where !end.isClosed {
      switch how {
      case .exits: end.close()
      case .isKilled: end.reset()
      case .vanishes: end.wire.lose()
      }
    }
    ends.removeAll()
  }
}
