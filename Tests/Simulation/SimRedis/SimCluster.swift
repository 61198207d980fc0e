/// The nodes of one cluster. The world decides when they hear of one another, and when a replica takes over.
package final class SimCluster {
  package let nodes: [SimRedisServer]
  private var epoch: Int64 = 0
  /// The messages that are on their way to the subscribers of other nodes.
  private var messages: [(from: Int, channel: Bytes, message: Bytes)] = []

  /// Creates a cluster whose nodes know one another.
  ///
  /// - Parameters:
  ///   - nodes: The masters first, which get equal parts of the slots, and then the replicas.
  ///   - masterCount: The number of masters.
  package init(_ nodes: [SimRedisServer], masterCount: Int) {
    self.nodes = nodes
    let addresses = nodes.map(\.settings.address)
    var owners: [Int?] = []
    for master in 0..<masterCount {
      let end = (master + 1) * SimSlots.count / masterCount
      owners += Array(repeating: master, count: end - owners.count)
    }
    for (number, node) in nodes.enumerated() {
      node.slots = SimSlotView(node: number, addresses: addresses, owners: owners)
      node.didPublish = { [weak self] in self?.messages.append((number, $0, $1)) }
    }
  }

  /// Makes a node the replica of a master, and returns the link, which is down.
  package func follow(_ replica: Int, _ master: Int) -> SimReplicationLink {
    for node in nodes { node.slots?.mastersOfReplicas[replica] = master }
    return SimReplicationLink(from: nodes[replica], to: nodes[master])
  }

  /// Whether published messages have not been passed on.
  package var hasMessages: Bool { !messages.isEmpty }

  /// Passes published messages to the subscribers of the other nodes that run.
  package func passMessages() {
    let passed = messages
    messages = []
    for (from, channel, message) in passed {
      for (number, node) in nodes.enumerated() where number != from && node.isActive {
        node.deliver(message, to: channel)
      }
    }
  }

  /// One node hears what another one knows.
  package func gossip(from source: Int, to target: Int) {
    guard source != target, nodes[source].isActive, nodes[target].isActive, let view = nodes[source].slots
    else {
      return
    }
    nodes[target].slots?.merge(view)
  }

  /// All nodes that run hear of one another.
  package func gossip() {
    for source in nodes.indices {
      for target in nodes.indices { gossip(from: source, to: target) }
    }
  }

  /// Takes it that a majority has found a master dead, or alive again.
  package func mark(_ node: Int, isFailed: Bool) {
    for other in nodes.indices where other != node {
      if isFailed {
        nodes[other].slots?.failed.insert(node)
      } else {
        nodes[other].slots?.failed.remove(node)
      }
    }
  }

  /// The vote of the masters for a replica: it takes over its master's slots. The other nodes learn it by gossip, and
  /// so does the former master, which then follows after `yield`.
  package func failOver(to replica: Int) {
    guard let master = nodes[replica].slots?.mastersOfReplicas[replica], nodes[replica].isActive else {
      return
    }
    epoch += 1
    nodes[replica].promote()
    let slots = (0..<SimSlots.count).filter { nodes[replica].slots?.owners[$0] == master }
    nodes[replica].slots?.assign(slots, to: replica, epoch: epoch)
    nodes[replica].slots?.mastersOfReplicas[replica] = nil
  }

  /// Makes a former master that has heard of its successor the successor's replica, and returns the link, which is
  /// down; `nil` if it has heard of none.
  package func yield(_ former: Int, to successor: Int) -> SimReplicationLink? {
    guard let view = nodes[former].slots, !view.hasSlots(former), nodes[former].isMaster,
      view.hasSlots(successor)
    else { return nil }
    for node in nodes { node.slots?.mastersOfReplicas[former] = successor }
    return SimReplicationLink(from: nodes[former], to: nodes[successor])
  }
}

/// The migration of slots.
extension SimCluster {
  /// Begins to move a slot.
  package func beginMigration(of slot: Int, from source: Int, to target: Int) {
    nodes[source].slots?.migrating[slot] = target
    nodes[target].slots?.importing[slot] = source
  }

  /// Moves some keys of a slot, in their order. Returns the number of keys that are left.
  package func moveKeys(of slot: Int, from source: Int, to target: Int, limit: Int = .max, at now: Int64)
    -> Int
  {
    let (from, to) = (nodes[source], nodes[target])
    let keys = from.keys(at: now).filter { SimSlots.slot(of: $0) == slot }
    for key in keys.prefix(limit) {
      guard let entry = from.entry(key, at: now) else { continue }
      to.make(.set(key, entry), in: 0)
      from.make(.delete(key), in: 0)
    }
    to.commitChanges(in: 0)
    from.commitChanges(in: 0)
    return max(0, keys.count - limit)
  }

  /// Gives the slot to the target, which both nodes know at once, and the others by gossip.
  package func endMigration(of slot: Int, from source: Int, to target: Int) {
    epoch += 1
    for node in [target, source] {
      nodes[node].slots?.assign([slot], to: target, epoch: epoch)
      nodes[node].slots?.migrating[slot] = nil
      nodes[node].slots?.importing[slot] = nil
    }
  }
}
