/// One simulated Redis or Valkey, or a Sentinel: a pure state machine that takes the bytes of its connections, and
/// returns bytes.
///
/// It has the commands that Semel sends. It has no thread, socket or clock of its own: each event comes with the world's
/// time, in nanoseconds, and random numbers come from a generator of the caller's. Nothing happens between two events;
/// `nextEvent` names the time at which `advance` has something to do.
///
/// Not safe to use from several threads.
package final class SimRedisServer {
  /// The data of a server that an end of its process or of its machine leaves.
  struct Disk {
    var databases: [Keyspace]
    /// The changes that are written and not synced.
    var unsynced: [ReplicationEntry] = []
    var syncedAt: Int64 = 0
    /// The place in the stream up to which changes are synced.
    var syncedEnd: Int64 = 0
  }

  static let databaseCount = 16

  package let settings: SimRedisSettings
  package var clock: SimRedisClock
  /// The settings that may change while the server runs.
  package var maxMemory: Int?
  package var minReplicas: Int
  /// The error of the last write to the file, as the operating system words it; `nil` if it was written.
  package var diskFault: String?

  var random: any RandomNumberGenerator
  var databases: [Keyspace]
  let engine: LuaEngine
  var log: ReplicationLog
  var disk: Disk
  package private(set) var run: String
  /// Whether it runs, and whether its process stands still.
  package private(set) var isRunning = true
  package private(set) var isFrozen = false
  /// Whether it reads its data from disk.
  package internal(set) var isLoading = false
  var evictedCount = 0

  var clients: [Int: SimClient] = [:]
  private var lastClient = 0
  /// The connections that subscribe to a channel, in the order of subscription.
  var subscribers: [Bytes: [Int]] = [:]
  private var outputs: [SimRedisOutput] = []

  /// The links of this master to its replicas, and of this replica to its master.
  package internal(set) var replicas: [SimReplicationLink] = []
  package internal(set) weak var upstream: SimReplicationLink?
  /// The address of the master that it follows; `nil` for a master.
  package internal(set) var masterAddress: SimAddress?
  /// The slots as this node of a cluster knows them; `nil` outside a cluster.
  package var slots: SimSlotView?
  /// The masters that this Sentinel knows, by their names; `nil` for any other server.
  package var monitored: [String: SimAddress]?
  /// Called with each message that other nodes of the cluster pass to their subscribers.
  package var didPublish: (Bytes, Bytes) -> Void = { _, _ in }
  /// Called with each key that a command of this server makes or removes, with what was there before and is there now.
  package var didChange: ((Bytes, Keyspace.Entry?, Keyspace.Entry?) -> Void)?

  /// The changes of the present command, and the state of the present script.
  var effects: [SimEffect] = []
  var script: SimScript?

  /// Creates a server that runs, and is a master without data.
  package init(_ settings: SimRedisSettings, clock: SimRedisClock, random: some RandomNumberGenerator) {
    self.settings = settings
    self.clock = clock
    var generator: any RandomNumberGenerator = random
    run = Self.name(&generator)
    log = ReplicationLog(id: Self.name(&generator), maxSize: settings.backlogSize)
    self.random = generator
    engine = LuaEngine(settings.version)
    maxMemory = settings.maxMemory
    minReplicas = settings.minReplicas
    databases = Array(repeating: Keyspace(), count: Self.databaseCount)
    disk = Disk(databases: databases)
    engine.didCall = { [unowned self] in runInScript($0, line: $1) }
    engine.fault = { [unowned self] in scriptFault($0, line: $1) }
  }

  package var version: SimRedisVersion { settings.version }
  package var isMaster: Bool { masterAddress == nil }
  package var historyID: String { log.id }
  /// The place in the stream of changes that it has reached.
  package var place: Int64 { log.end }
  /// The changes that were made up to here are on its disk.
  package var syncedPlace: Int64 { settings.appendOnly == nil ? 0 : disk.syncedEnd }
  /// Whether it takes bytes and time.
  var isActive: Bool { isRunning && !isFrozen }

  /// Forty random digits, as a run or a history is named.
  static func name(_ random: inout any RandomNumberGenerator) -> String {
    let digits = Array("0123456789abcdef")
    return String((0..<40).map { _ in digits[Int(random.next() % 16)] })
  }

  /// A new name.
  func makeName() -> String { Self.name(&random) }
}

/// Its connections.
extension SimRedisServer {
  /// Accepts a connection, and returns its number; `nil` if no process listens.
  package func open() -> Int? {
    guard isRunning else { return nil }
    lastClient += 1
    guard clients.count < settings.maxClients else {
      send(.error("ERR max number of clients reached"), to: lastClient)
      outputs.append(.close(connection: lastClient))
      return lastClient
    }
    clients[lastClient] = SimClient(id: lastClient, isAuthenticated: settings.users["default"] == nil)
    return lastClient
  }

  /// Takes bytes of a connection, which a frozen server reads later.
  package func receive(_ bytes: Bytes, on connection: Int, at now: Int64) {
    guard let client = clients[connection] else { return }
    client.parser.feed(bytes)
    guard isActive else { return }
    runCommands(of: client, at: now)
  }

  /// Takes the end of a connection by its client.
  package func close(_ connection: Int) {
    guard let client = clients.removeValue(forKey: connection) else { return }
    for channel in client.channels { subscribers[channel]?.removeAll { $0 == connection } }
  }

  /// Ends a connection.
  func end(_ client: SimClient) {
    close(client.id)
    outputs.append(.close(connection: client.id))
  }

  /// Ends all connections, in the order in which they were opened.
  package func endConnections() {
    for client in clients.values.sorted(by: { $0.id < $1.id }) { end(client) }
  }

  /// Returns the outputs since the last call, in their order.
  package func takeOutputs() -> [SimRedisOutput] {
    guard !outputs.isEmpty else { return [] }
    defer { outputs.removeAll() }
    return outputs
  }

  func send(_ reply: RESPReply, to connection: Int) {
    var bytes: Bytes = []
    reply.write(to: &bytes)
    guard !bytes.isEmpty else { return }
    if case .bytes(connection, var earlier)? = outputs.last {
      outputs.removeLast()
      earlier += bytes
      outputs.append(.bytes(connection: connection, earlier))
    } else {
      outputs.append(.bytes(connection: connection, bytes))
    }
  }

  /// Runs the commands that a connection has sent, up to one that blocks.
  func runCommands(of client: SimClient, at now: Int64) {
    do throws(RESPParser.Fault) {
      while clients[client.id] != nil, client.wait == nil, let words = try client.parser.next() {
        if !words.isEmpty { run(words, of: client, at: now) }
      }
    } catch {
      send(.error(error.text), to: client.id)
      end(client)
    }
  }

  private func run(_ words: [Bytes], of client: SimClient, at now: Int64) {
    let call = SimCall(words: words, client: client, time: clock.milliseconds(at: now), now: now)
    let reply = perform(call)
    guard clients[client.id] != nil else { return }
    send(reply, to: client.id)
  }
}

/// Its process.
extension SimRedisServer {
  /// Stops the process in the middle of whatever it does. Its sockets go on accepting and buffering.
  package func freeze() { isFrozen = true }

  /// Lets the process go on.
  package func thaw(at now: Int64) {
    guard isFrozen else { return }
    isFrozen = false
    guard isRunning else { return }
    for client in clients.values.sorted(by: { $0.id < $1.id }) { runCommands(of: client, at: now) }
    advance(to: now)
  }

  /// The loss of an end.
  package enum Loss: Sendable {
    /// The process has ended: what it has written is kept.
    case process
    /// The machine has lost its power: what was not synced is lost.
    case power
  }

  /// Ends the process, and with it all connections and the links to other servers.
  package func kill(_ loss: Loss) {
    guard isRunning else { return }
    endConnections()
    isRunning = false
    isFrozen = false
    upstream?.cut()
    for link in replicas { link.cut() }
    if loss == .process { sync() } else { disk.unsynced = [] }
  }

  /// Starts the process again with the data of its disk.
  ///
  /// - Parameter isLoading: Whether it still reads them, until `finishLoading`.
  package func restart(at now: Int64, isLoading: Bool = false) {
    precondition(!isRunning, "SimRedisServer: started twice")
    isRunning = true
    self.isLoading = isLoading
    databases = disk.databases
    engine.removeAll()
    evictedCount = 0
    diskFault = nil
    run = makeName()
    log = ReplicationLog(id: makeName(), maxSize: settings.backlogSize)
    (disk.syncedEnd, disk.syncedAt) = (0, now)
  }

  package func finishLoading() { isLoading = false }

  /// Forgets the scripts, as `SCRIPT FLUSH` does.
  package func forgetScripts() { engine.removeAll() }

  /// Removes all keys without a trace, as a server that comes back empty.
  package func removeAll() {
    databases = Array(repeating: Keyspace(), count: Self.databaseCount)
    disk.databases = databases
    disk.unsynced = []
  }
}
