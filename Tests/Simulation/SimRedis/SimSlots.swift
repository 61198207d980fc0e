/// The hash slots of a cluster.
package enum SimSlots {
  package static let count = 16384

  /// CRC-16/XMODEM of each byte.
  private static let table: [UInt16] = (0..<256).map { byte in
    (0..<8).reduce(UInt16(byte) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
  }

  /// The slot of a key: of its first part in braces, if it has one that is not empty, else of the whole key.
  package static func slot(of key: Bytes) -> Int {
    var tag = key[...]
    if let open = key.firstIndex(of: UInt8(ascii: "{")),
      let close = key[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
    {
      tag = key[(open + 1)..<close]
    }
    return Int(tag.reduce(0) { $0 << 8 ^ table[Int(UInt8($0 >> 8) ^ $1)] }) % count
  }
}

/// The slots and their masters as one node of a cluster knows them.
package struct SimSlotView {
  /// The number of this node among those of its cluster.
  let node: Int
  /// The nodes' addresses by their numbers, the same at every node.
  let addresses: [SimAddress]
  /// The number of each slot's master; `nil` for a slot without one.
  package private(set) var owners: [Int?]
  /// The neighbouring slots of one master each.
  package private(set) var runs: [(slots: ClosedRange<Int>, owner: Int)] = []
  /// The masters, and whether there are slots without one.
  private var masters: Set<Int> = []
  private var hasOrphans = false
  /// The epoch of each slot's present master, by which nodes that differ find out who is right.
  private(set) var epochs: [Int64]
  /// The masters that a majority takes for dead.
  package var failed: Set<Int> = []
  /// Whether this node reaches no majority of the masters.
  package var isMinority = false
  /// The slots that are on their way to another node, and from another node.
  package var migrating: [Int: Int] = [:]
  package var importing: [Int: Int] = [:]
  /// The master of each replica.
  package var mastersOfReplicas: [Int: Int] = [:]

  init(node: Int, addresses: [SimAddress], owners: [Int?]) {
    self.node = node
    self.addresses = addresses
    self.owners = owners
    epochs = Array(repeating: 0, count: SimSlots.count)
    sumUp()
  }

  /// Whether the node serves anything.
  var isUp: Bool { !isMinority && !hasOrphans && !failed.contains(where: hasSlots) }

  /// Whether a node is the master of slots.
  package func hasSlots(_ node: Int) -> Bool { masters.contains(node) }

  /// Gives slots to a master.
  package mutating func assign(_ slots: some Sequence<Int>, to owner: Int?, epoch: Int64) {
    for slot in slots { (owners[slot], epochs[slot]) = (owner, epoch) }
    sumUp()
  }

  private mutating func sumUp() {
    runs.removeAll()
    for (slot, owner) in owners.enumerated() {
      guard let owner else { continue }
      if let last = runs.last, last.owner == owner, last.slots.upperBound == slot - 1 {
        runs[runs.count - 1].slots = last.slots.lowerBound...slot
      } else {
        runs.append((slot...slot, owner))
      }
    }
    masters = Set(runs.map(\.owner))
    hasOrphans = runs.reduce(0) { $0 + $1.slots.count } < owners.count
  }

  /// Takes what another node knows.
  mutating func merge(_ other: SimSlotView) {
    var hasChanged = false
    for slot in 0..<SimSlots.count where other.epochs[slot] > epochs[slot] {
      (owners[slot], epochs[slot]) = (other.owners[slot], other.epochs[slot])
      if owners[slot] == node { importing[slot] = nil } else { migrating[slot] = nil }
      hasChanged = true
    }
    if hasChanged { sumUp() }
    mastersOfReplicas = mastersOfReplicas.filter { !hasSlots($0.key) }
    for (replica, master) in other.mastersOfReplicas where !hasSlots(replica) && replica != node {
      mastersOfReplicas[replica] = master
    }
  }
}

/// A node's replies about slots.
extension SimRedisServer {
  /// The reply to a command whose keys are elsewhere, or may not be used now; `nil` if they may.
  func redirection(of command: SimCommand, _ call: SimCall, in view: SimSlotView) -> RESPReply? {
    let keys = command.keys(of: call.words)
    guard let first = keys.first else { return nil }
    let slot = SimSlots.slot(of: first)
    guard keys.allSatisfy({ SimSlots.slot(of: $0) == slot }) else {
      return .error("CROSSSLOT Keys in request don't hash to the same slot")
    }
    guard let owner = view.owners[slot] else { return .error("CLUSTERDOWN Hash slot not served") }
    guard view.isUp else { return .error("CLUSTERDOWN The cluster is down") }
    let present = keys.count { databases[0].live($0, at: call.time) != nil }
    if owner == view.node, let target = view.migrating[slot], present < keys.count {
      return present > 0 && version != .redis6
        ? Self.tryAgain : .error("ASK \(slot) \(view.addresses[target].text)")
    }
    if owner != view.node, view.importing[slot] != nil, call.client.isAsking {
      return keys.contains { $0 != first } && present < keys.count ? Self.tryAgain : nil
    }
    return owner == view.node ? nil : .error("MOVED \(slot) \(view.addresses[owner].text)")
  }

  private static let tryAgain = RESPReply.error("TRYAGAIN Multiple keys request during rehashing of slot")

  func clusterCommand(_ call: SimCall) -> RESPReply {
    let isSlots = call.text(1).uppercased() == "SLOTS"
    if !isSlots, slots != nil || version != .redis6 {
      return version.unknownSubcommand("cluster", call.words[1])
    }
    guard let view = slots else { return .error("ERR This instance has cluster support disabled") }
    guard call.words.count == 2 else { return version.wrongArity("cluster", call.words[1]) }
    return .array(
      view.runs.map { run in
        let replicas = view.mastersOfReplicas.filter { $0.value == run.owner }.keys.sorted()
        return .array(
          [.integer(Int64(run.slots.lowerBound)), .integer(Int64(run.slots.upperBound))]
            + ([run.owner] + replicas).map { node(view, $0) })
      })
  }

  private func node(_ view: SimSlotView, _ number: Int) -> RESPReply {
    let address = view.addresses[number]
    let digits = String(number, radix: 16)
    let name = String(repeating: "0", count: 40 - digits.count) + digits
    let members: [RESPReply] = [.text(address.host), .integer(Int64(address.port)), .text(name)]
    return .array(version == .redis6 ? members : members + [.array([])])
  }
}
