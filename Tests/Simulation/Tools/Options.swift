import Glibc

/// The arguments of a run.
struct Options {
  var seconds = 10.0
  /// The time for the search for a smaller world.
  var searchSeconds = 120.0
  var seed: UInt64?
  /// The first of the seeds that a search takes.
  var first = UInt64.random(in: 0...(.max))
  var intents: Int?
  var worlds: Int?
  var nodes: Int?
  var topology: Plan.Topology?
  var faults: [Plan.Fault]?
  var plan: Plan?
  var minimises = false
  var printsHashes = false
  /// Whether each world is run twice, which must come to the same.
  var runsTwice = false
  /// Whether a search goes on after a violation.
  var goesOn = false

  init(_ arguments: some Sequence<String>) {
    var left = Array(arguments)
    while !left.isEmpty {
      let name = left.removeFirst()
      switch name {
      case "--hashes": printsHashes = true
      case "--twice": runsTwice = true
      case "--go-on": goesOn = true
      default: take(name, left.isEmpty ? "" : left.removeFirst())
      }
    }
  }

  private mutating func take(_ name: String, _ value: String) {
    switch name {
    case "--seconds":
      seconds = Double(value) ?? Self.refuse(name)
      searchSeconds = seconds
    case "--seed": seed = UInt64(value) ?? Self.refuse(name)
    case "--minimise":
      seed = UInt64(value) ?? Self.refuse(name)
      minimises = true
    case "--first": first = UInt64(value) ?? Self.refuse(name)
    case "--intents": intents = Int(value) ?? Self.refuse(name)
    case "--worlds": worlds = Int(value) ?? Self.refuse(name)
    case "--topology": topology = Plan.Topology(rawValue: value) ?? Self.refuse(name)
    case "--nodes": nodes = Int(value) ?? Self.refuse(name)
    case "--faults":
      faults = value.split(separator: ",").map {
        Plan.Fault(rawValue: "\($0)") ?? Self.refuse(name)
      }
    case "--plan": plan = Plan(text: value) ?? Self.refuse(name)
    default: let _: Int = Self.refuse(name)
    }
  }

  private static func refuse<Value>(_ name: String) -> Value {
    print("simulate: the argument \(name) is not known, or lacks its value")
    exit(2)
  }

  /// The plan of a seed, with what the arguments change of it.
  func plan(of seed: UInt64) -> Plan {
    var plan = plan ?? Plan(seed: seed, topology: topology)
    if let nodes { plan.nodes = nodes }
    if let faults { plan.faults = faults }
    return plan
  }
}
