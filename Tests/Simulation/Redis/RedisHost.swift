import NIOCore
import SimRedis

/// One server of Redis, or a Sentinel, in the network of its world.
final class RedisHost {
  let server: SimRedisServer
  let number: Int
  private let network: Network
  private var connections: [Int: RedisConnection] = [:]
  /// Those whose clients have gone while the process stood still.
  private var leaving: [RedisConnection] = []
  /// The ends of clients whose connections went with the power of this machine.
  private var orphans: [End] = []
  private var isPowerless = false
  /// The moment until which it takes no connections.
  private var refusesUntil = Moment.start
  /// The time of the server's next event.
  private var dueAt: Int64?
  /// Called when the server may have something for its replicas, or for other nodes of its cluster.
  var didChange: () -> Void = {}

  init(_ server: SimRedisServer, number: Int, on network: Network) {
    self.server = server
    self.number = number
    self.network = network
    network.listen(at: server.settings.address.port) { [unowned self] in
      if server.isRunning { return network.schedule.now < refusesUntil ? .refuses : .accepts(accept) }
      return isPowerless ? .ignores : .refuses
    }
  }

  var schedule: Schedule { network.schedule }
  var now: Int64 { schedule.now.nanoseconds }
  /// Whether it takes bytes and time.
  var isAwake: Bool { server.isRunning && !server.isFrozen }
  /// Whether it serves.
  var isWell: Bool { isAwake && !server.isLoading && server.diskFault == nil }

  private func accept(_ end: End) {
    guard let number = server.open() else { return end.reset() }
    let connection = RedisConnection(end, self, number)
    connections[number] = connection
    end.owner = connection
    settle()
    if end.hasBytes { connection.arrived(at: end) }
  }

  fileprivate func received(_ bytes: Bytes, on connection: Int) {
    server.receive(bytes, on: connection, at: now)
    settle()
  }

  /// Takes the end of a client's bytes. A process that stands still reads first what came before it.
  fileprivate func ended(_ connection: RedisConnection, isReset: Bool) {
    guard isReset || !server.isFrozen else { return leaving.append(connection) }
    drop(connection)
  }

  private func drop(_ connection: RedisConnection) {
    server.close(connection.number)
    connections[connection.number] = nil
    connection.close()
  }

  /// Passes on what the server has for its connections and for other servers.
  func settle() {
    flush()
    awaitEvent()
    didChange()
  }

  /// Passes on what the server has for its connections.
  func flush() {
    for output in server.takeOutputs() {
      switch output {
      case .bytes(let connection, let bytes): connections[connection]?.send(bytes)
      case .close(let connection): connections.removeValue(forKey: connection)?.close()
      }
    }
  }

  /// Lets the server have its time.
  private func awaitEvent() {
    guard let at = server.nextEvent(after: now), dueAt.map({ at < $0 }) ?? true else { return }
    dueAt = at
    schedule.at(Moment(nanoseconds: max(at, now + 1000))) { [self] in
      guard dueAt == at else { return }
      dueAt = nil
      server.advance(to: now)
      settle()
    }
  }
}

// The server's fate.
extension RedisHost {
  /// Ends the process, or the machine without a word to anybody.
  func kill(_ loss: SimRedisServer.Loss) {
    schedule.note(11)
    if loss == .power {
      isPowerless = true
      for connection in connections.values.sorted(by: { $0.number < $1.number }) {
        orphans.append(connection.abandon())
      }
      connections.removeAll()
    }
    server.kill(loss)
    leaving.removeAll()
    settle()
  }

  func restart(isLoadingFor span: Span? = nil) {
    schedule.note(12)
    isPowerless = false
    server.restart(at: now, isLoading: span != nil)
    // The machine knows nothing of these connections.
    for end in orphans {
      end.wire.heal()
      end.breakOff()
    }
    orphans.removeAll()
    if let span {
      schedule.after(span) { [self] in
        server.finishLoading()
        settle()
      }
    }
    settle()
  }

  /// Takes no connections for a time.
  func refuse(for span: Span) { refusesUntil = schedule.now + span }

  func freeze() {
    schedule.note(13)
    server.freeze()
  }

  func thaw() {
    server.thaw(at: now)
    settle()
    leaving.forEach(drop)
    leaving.removeAll()
  }
}

/// One connection of a client to a server.
private final class RedisConnection: EndOwner {
  private let end: End
  private unowned let host: RedisHost
  let number: Int
  private var unsent = ByteBuffer()

  init(_ end: End, _ host: RedisHost, _ number: Int) {
    self.end = end
    self.host = host
    self.number = number
  }

  func arrived(at end: End) {
    while let piece = end.read() { host.received(Bytes(piece.readableBytesView), on: number) }
    if end.isReset || end.hasEnded { host.ended(self, isReset: end.isReset) }
  }

  func becameWritable(_ end: End) { unsent.moveReaderIndex(forwardBy: end.send(unsent)) }

  func send(_ bytes: Bytes) {
    unsent.discardReadBytes()
    unsent.writeBytes(bytes)
    becameWritable(end)
  }

  func close() { end.close() }

  /// Is gone without a word. Returns the end of the client.
  func abandon() -> End {
    end.wire.lose()
    end.owner = nil
    return end.peer
  }
}
