import NIOCore

/// The owner of one end of a connection: a channel of a node, or a client or a backend of the world.
protocol EndOwner: AnyObject {
  /// Bytes, the end of the peer's bytes, or a reset have arrived.
  func arrived(at end: End)
  /// The peer has read something, so that more can be sent.
  func becameWritable(_ end: End)
}

/// A connection between two ends, with the faults of its network.
///
/// Its bytes keep their order. Their pieces, and when they arrive, are by the seed.
final class Wire {
  let schedule: Schedule
  /// The port to which it leads.
  let port: Int
  var dice: Dice
  /// The time that a piece usually takes.
  private(set) var latency: Double
  /// The bytes that an end takes without reading them.
  private(set) var capacity: Int
  /// Whether nothing arrives any more, and nobody is told.
  private(set) var isLost = false
  private(set) var stalledUntil = Moment.start
  /// Called with each piece that an end sends.
  var onSend: ((End, ByteBuffer) -> Void)?
  /// Called when the far end states that it takes no request after a stream.
  var onLeave: ((Int) -> Void)?

  private static let latencies = 0.00005...0.0005
  private static let farLatency = 0.003
  private static let fullCapacity = 64 << 10

  init(on schedule: Schedule, to port: Int, _ dice: Dice) {
    self.schedule = schedule
    self.port = port
    self.dice = dice
    latency =
      self.dice.chance(0.1)
      ? self.dice.between(0.001, 0.03)
      : self.dice.between(Self.latencies.lowerBound, Self.latencies.upperBound)
    // Long and narrow, it would hold up what shares it for longer than anybody waits.
    let isNarrow = self.dice.chance(0.1) && latency <= Self.latencies.upperBound
    capacity = isNarrow ? 1 << 10 : Self.fullCapacity
  }

  /// Makes the two ends of it.
  func ends() -> (End, End) {
    let (near, far) = (End(of: self), End(of: self))
    near.peer = far
    far.peer = near
    return (near, far)
  }

  /// Loses all that is under way, and whatever is sent from now on.
  func lose() { isLost = true }

  /// Ends a loss.
  func heal() { isLost = false }

  /// Carries from now on what it is given: one that is long and narrow has no room for what all clients send at last.
  func widen() {
    latency = min(latency, Self.latencies.upperBound)
    capacity = Self.fullCapacity
  }

  /// Leads far away from now on.
  func lengthen() { latency = Self.farLatency }

  func stall(for span: Span) { stalledUntil = max(stalledUntil, schedule.now + span) }

  /// The time at which something that is sent now arrives.
  func arrival() -> Moment {
    let jitter = dice.chance(0.02) ? dice.between(0, 0.02) : dice.between(0, latency)
    return max(schedule.now, stalledUntil) + Span(seconds: latency + jitter)
  }
}

/// One end of a connection.
final class End {
  let wire: Wire
  fileprivate(set) var peer: End!
  var owner: (any EndOwner)?
  private var inbox: [ByteBuffer] = []
  private var inboxBytes = 0
  /// Whether the peer's bytes have ended.
  private(set) var hasEnded = false
  /// Whether the peer has reset the connection.
  private(set) var isReset = false
  private(set) var isClosed = false
  /// Whether this end sends nothing more.
  private(set) var isShutDown = false
  /// The bytes that are under way from here.
  private var underWay = 0
  private var lastArrival = Moment.start
  private var isBlocked = false
  /// The moment after which nothing arrives of what was sent before a reset: nobody sends lost packets again.
  private var cutAt: Moment?

  fileprivate init(of wire: Wire) { self.wire = wire }

  var hasBytes: Bool { !inbox.isEmpty }

  /// Whether the peer is gone, as far as this end knows.
  var isOver: Bool { isClosed || isReset }

  /// Sends as many bytes as the connection takes, and returns their number.
  func send(_ bytes: ByteBuffer) -> Int {
    guard !isOver, !isShutDown else { return 0 }
    let room = wire.capacity - underWay - peer.inboxBytes
    let count = min(room, bytes.readableBytes)
    if count < bytes.readableBytes { isBlocked = true }
    guard count > 0, let taken = bytes.getSlice(at: bytes.readerIndex, length: count) else {
      return 0
    }
    wire.onSend?(self, taken)
    deliver(taken)
    return count
  }

  private func deliver(_ bytes: ByteBuffer) {
    var bytes = bytes
    while bytes.readableBytes > 0 {
      let isSplit = bytes.readableBytes > 1 && wire.dice.chance(0.08)
      let count = isSplit ? 1 + wire.dice.below(bytes.readableBytes - 1) : bytes.readableBytes
      guard let piece = bytes.readSlice(length: count) else { return }
      underWay += count
      whenDue { [self] in
        underWay -= count
        if let cutAt, wire.schedule.now > cutAt { return }
        peer.take(piece)
      }
    }
  }

  /// Does something at the other end, after all that was sent before.
  private func whenDue(_ act: @escaping () -> Void) {
    lastArrival = max(lastArrival.next, wire.arrival())
    let wire = wire
    // Each end lives as long as something is under way between them.
    let both = (self, peer)
    wire.schedule.at(lastArrival) { withExtendedLifetime(both) { if !wire.isLost { act() } } }
  }

  private func take(_ piece: ByteBuffer) {
    wire.schedule.note(piece.readableBytes)
    guard !isOver else { return isClosed ? peer.receiveResetLater() : () }
    inbox.append(piece)
    inboxBytes += piece.readableBytes
    owner?.arrived(at: self)
  }

  /// Reads what has arrived, or a part of it.
  func read() -> ByteBuffer? {
    guard !inbox.isEmpty else { return nil }
    let piece = inbox.removeFirst()
    inboxBytes -= piece.readableBytes
    if peer.isBlocked { whenDue { [self] in peer.unblock() } }
    return piece
  }

  private func unblock() {
    guard isBlocked, !isOver else { return }
    isBlocked = false
    owner?.becameWritable(self)
  }

  /// Lets go of the other end, once the world is over.
  func dismantle() {
    owner = nil
    peer = nil
  }

  /// Ends this end's bytes in order.
  func shutDown() {
    guard !isOver, !isShutDown else { return }
    isShutDown = true
    whenDue { [self] in peer.takeEnd() }
  }

  private func takeEnd() {
    guard !isOver, !hasEnded else { return }
    hasEnded = true
    owner?.arrived(at: self)
  }

  /// Closes this end in order; by a reset, if bytes are left that it has not read.
  func close() {
    guard !isClosed else { return }
    if hasBytes { return reset() }
    shutDown()
    isClosed = true
    owner = nil
  }

  /// Closes this end at once. What is under way may be lost.
  func reset() {
    guard !isClosed else { return }
    isClosed = true
    owner = nil
    inbox.removeAll()
    inboxBytes = 0
    if isReset { return }
    cutAt = wire.schedule.now + Span(seconds: wire.dice.chance(0.5) ? 0 : 0.05)
    whenDue { [self] in peer.receiveReset() }
  }

  private func receiveResetLater() { peer.whenDue { [self] in receiveReset() } }

  /// Ends the connection for the owner of this end, as a reset does that the network has made.
  func breakOff() { receiveReset() }

  private func receiveReset() {
    guard !isOver else { return }
    isReset = true
    owner?.arrived(at: self)
  }
}
