/// The connection of a replica to its master. The world decides when it moves: nothing passes by itself.
package final class SimReplicationLink {
  private enum State {
    /// There is no connection. Followed by `copying` or `streaming`.
    case down
    /// The master's data are on their way. Followed by `streaming` or `down`.
    case copying([Keyspace], ReplicationLog)
    /// The replica has what the master had at a place, and takes its changes. Followed by `down`.
    case streaming
  }

  package let master: SimRedisServer
  package let replica: SimRedisServer
  private var state = State.down
  /// The place in the stream up to which the master knows that the replica has it, and has it on disk.
  package private(set) var confirmedPlace: Int64 = 0
  package private(set) var syncedPlace: Int64 = 0
  /// The world's time of the last confirmation.
  package private(set) var confirmedAt: Int64 = 0

  /// Makes a server the replica of another one. The link is down until `connect`.
  package init(from replica: SimRedisServer, to master: SimRedisServer) {
    self.master = master
    self.replica = replica
    replica.becomeReplica(by: self)
    master.replicas.append(self)
  }

  /// Whether the replica takes the master's changes.
  package var isUp: Bool {
    if case .streaming = state { true } else { false }
  }

  /// Connects, if both servers run. The replica goes on where it was, if its history is a part of the master's, and
  /// otherwise begins with a copy of the master's data, which the next `deliver` brings.
  package func connect(at now: Int64) {
    guard case .down = state, master.isActive, replica.isActive, !master.isLoading else { return }
    confirmedAt = now
    if master.log.entries(after: replica.log.end, of: replica.log.id) != nil {
      replica.log.follow(master.log)
      confirmedPlace = replica.log.end
      state = .streaming
    } else {
      confirmedPlace = 0
      state = .copying(master.databases, master.log)
    }
    syncedPlace = 0
  }

  /// Passes changes on, the oldest first. Returns their number.
  ///
  /// - Parameter limit: The maximum number of changes.
  @discardableResult
  package func deliver(limit: Int = .max) -> Int {
    guard master.isActive, replica.isActive else { return 0 }
    if case .copying(let databases, let log) = state {
      replica.restore(databases, log)
      state = .streaming
      return 1
    }
    guard isUp else { return 0 }
    guard let entries = master.log.entries(after: replica.log.end) else {
      // The replica is too far behind.
      cut()
      return 0
    }
    for entry in entries.prefix(limit) { replica.take(entry) }
    return min(limit, entries.count)
  }

  /// The number of changes that the replica does not have yet.
  package var pendingCount: Int {
    if case .copying = state { return 1 }
    return isUp ? master.log.entries(after: replica.log.end)?.count ?? 0 : 0
  }

  /// Tells the master what the replica has, which may end waits.
  package func confirm(at now: Int64) {
    guard isUp, master.isActive, replica.isActive else { return }
    confirmedPlace = replica.log.end
    syncedPlace = replica.syncedPlace
    confirmedAt = now
    master.serveWaits(at: now)
  }

  /// Cuts the connection. What is on its way is lost, and comes again after `connect`.
  package func cut() { state = .down }

  /// Ends the link for good: the replica follows another server, or none.
  package func remove() {
    cut()
    master.replicas.removeAll { $0 === self }
    if replica.upstream === self { replica.upstream = nil }
  }
}

extension SimRedisServer {
  /// Follows a master, as `REPLICAOF` with an address does. Its data stay until it connects.
  fileprivate func becomeReplica(by link: SimReplicationLink) {
    upstream?.remove()
    upstream = link
    let wasMaster = isMaster
    masterAddress = link.master.settings.address
    if wasMaster { endWaits() }
  }

  /// Becomes a master, as `REPLICAOF NO ONE` does. Its history goes on under another name.
  package func promote() {
    guard !isMaster else { return }
    upstream?.remove()
    masterAddress = nil
    log.fork(id: makeName())
    for link in replicas { link.cut() }
  }

  /// Takes the copy of a master's data.
  fileprivate func restore(_ databases: [Keyspace], _ log: ReplicationLog) {
    self.databases = databases
    self.log = ReplicationLog(id: log.id, end: log.end, maxSize: settings.backlogSize)
    disk.databases = databases
    disk.unsynced = []
    disk.syncedEnd = log.end
    // Its own replicas have another history.
    for link in replicas { link.cut() }
  }
}
