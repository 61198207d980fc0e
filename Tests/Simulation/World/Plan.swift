/// The plan of a world, by its seed, with the changes that a run has made to it.
struct Plan {
  enum Fault: String, CaseIterable {
    case clientNetwork, backendNetwork, backendAway, sickBackend, kill, freeze, standstill,
      storeAway
    case storeStalls, storeLosses, storeSlow, forget, clocks, resolve, put, drain, reload
    case refusingBackend, slowBackend
    case storeScripts, storeClock, shortMemory, storeFull, replication, failover, slots
    /// One node alone does not reach the store, or all nodes do not for a moment.
    case storeCutOff, storeHiccup
    /// A fault of the backend's that breaks a rule, so that there is something to find. No plan has it by itself.
    case runsTwice
  }

  /// The store: in memory, or one of the real store's.
  enum Topology: String, CaseIterable {
    case memory, standalone, replica, sentinel, cluster

    /// The faults that mean something in it.
    var faults: [Fault] {
      Fault.allCases.filter { fault in
        switch fault {
        case .storeScripts, .storeClock, .shortMemory, .storeFull: self != .memory
        case .replication: self != .memory && self != .standalone
        case .failover: self == .sentinel || self == .cluster
        case .slots: self == .cluster
        case .runsTwice: false
        default: true
        }
      }
    }
  }

  var topology: Topology
  var nodes: Int
  /// Whether the backend speaks HTTP/2, and some clients do.
  var isHTTP2: Bool
  var hasHTTP2Clients: Bool
  var faults: [Fault]
  /// The numbers of the intents.
  var intents: [Int]
  /// The numbers of the batches.
  var batches: [Int]
  /// The seconds in which the intents begin.
  var seconds: Double

  init(seed: UInt64, topology wanted: Topology? = nil) {
    var dice = Dice(seed, "plan")
    let drawn = Topology.allCases[dice.below(Topology.allCases.count)]
    topology = wanted ?? drawn
    nodes = 1 + dice.below(4)
    isHTTP2 = dice.chance(0.4)
    hasHTTP2Clients = dice.chance(0.3)
    let likelihood = dice.between(0.1, 0.8)
    faults = topology.faults.filter { _ in dice.chance(likelihood) }
    // In some worlds nothing keeps nodes from what they have to do, which is judged more strictly then.
    // In some more there is one fault that does, and much is under way at any moment.
    let lone = dice.chance(0.5) ? Self.lone.filter(topology.faults.contains) : []
    if dice.chance(0.15) || !lone.isEmpty { faults.removeAll { !Self.peaceful.contains($0) } }
    if !lone.isEmpty {
      faults.append(lone[dice.below(lone.count)])
      // Others take over from one node.
      if faults.contains(.freeze) || faults.contains(.storeCutOff) { nodes = max(nodes, 2) }
      for fault in [Fault.slowBackend, .forget] where !faults.contains(fault) { faults.append(fault) }
    }
    intents = Array(0..<(20 + dice.below(100)))
    batches = Array(0..<(dice.chance(0.3) ? 0 : dice.below(40)))
    seconds = Double(Int(dice.between(1, 15)))
    // The step of a clock by which all is forgotten comes late, and something has to follow it.
    if faults.contains(.shortMemory), faults.contains(.storeClock) { seconds = max(seconds, 12) }
  }

  /// The faults of clients, operators and backends alone.
  private static let peaceful: Set<Fault> = [
    .clientNetwork, .sickBackend, .refusingBackend, .slowBackend, .clocks, .forget, .resolve, .put, .reload,
  ]

  /// Those that are alone in some worlds.
  private static let lone: [Fault] = [
    .kill, .freeze, .freeze, .backendAway, .backendAway, .storeAway, .storeAway, .storeClock,
    .storeHiccup, .storeHiccup, .storeCutOff, .storeCutOff, .storeCutOff,
  ]

  /// Reads the text of a plan; `nil` if it is none.
  init?(text: String) {
    self.init(seed: 0)
    for member in text.split(separator: ";") {
      let parts = member.split(separator: "=", omittingEmptySubsequences: false)
      guard parts.count == 2 else { return nil }
      let values = parts[1].split(separator: ",").map(String.init)
      switch parts[0] {
      case "topology": topology = values.first.flatMap(Topology.init) ?? .memory
      case "nodes": nodes = values.first.flatMap { Int($0) } ?? 0
      case "http2":
        isHTTP2 = values.contains("backend")
        hasHTTP2Clients = values.contains("clients")
      case "seconds": seconds = values.first.flatMap { Double($0) } ?? 0
      case "faults": faults = values.compactMap(Fault.init)
      case "intents": intents = values.compactMap { Int($0) }
      case "batches": batches = values.compactMap { Int($0) }
      default: return nil
      }
    }
    guard 1...8 ~= nodes, seconds > 0 else { return nil }
  }

  /// The parties that speak HTTP/2.
  private var http2: String {
    ((isHTTP2 ? ["backend"] : []) + (hasHTTP2Clients ? ["clients"] : [])).joined(separator: ",")
  }

  /// The plan as text, by which it can be run again.
  var text: String {
    let faults = faults.map(\.rawValue).joined(separator: ",")
    let intents = intents.map(String.init).joined(separator: ",")
    let batches = batches.map(String.init).joined(separator: ",")
    return
      "topology=\(topology.rawValue);nodes=\(nodes);http2=\(http2);seconds=\(seconds);faults=\(faults);intents=\(intents);batches=\(batches)"
  }

  /// The plan for a person.
  var summary: String {
    let names = faults.isEmpty ? "none" : faults.map(\.rawValue).joined(separator: ", ")
    return
      "\(topology.rawValue), \(nodes) nodes, HTTP/2: \(http2.isEmpty ? "nobody" : http2), \(intents.count) intents and \(batches.count) batches in \(seconds) s, faults: \(names)"
  }
}
